// SPDX-License-Identifier: Apache-2.0
// What cannot be opened or watched at once.
#include "guest-agent/agent/openings.hpp"

#include <utility>

#include "guest-agent/agent/tree_watch.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

TEST_CASE("what cannot be watched is not taken for watched") {
  tests::TempDir files;
  files.write("file", "");
  agent::TreeWatch watch;
  CHECK_FALSE(watch.watch_only({files.path()}));
  CHECK_FALSE(watch.is_complete());
  REQUIRE(watch.open());
  CHECK(watch.watch_only({files.path(), files.path() / "gone"}));
  CHECK(watch.is_complete());
  REQUIRE(watch.open());
  CHECK_FALSE(watch.is_complete());
  CHECK(watch.watch_only({files.path()}));
  watch.watch_only({files.path() / "file"});  // ENOTDIR
  CHECK_FALSE(watch.is_complete());
}

TEST_CASE("a watch whose events cannot be read says so") {
  tests::TempDir files;
  agent::TreeWatch watch;
  REQUIRE(watch.open());
  watch.watch_only({files.path()});
  std::filesystem::create_directory(files.path() / "one");
  const auto news = watch.drain();
  REQUIRE(news);
  CHECK(news->changed);
  watch.close();
  CHECK_FALSE(watch.is_complete());
  CHECK_FALSE(watch.drain());
}

TEST_CASE("what has failed since it was opened is opened again by the next attempt") {
  int tried = 0;
  agent::Openings openings;
  openings.add_failed(
      [&tried]() -> base::Result<void> {
        ++tried;
        return {};
      },
      base::Error{base::ErrorCode::kTransient, "a test"});
  CHECK(tried == 0);
  CHECK_FALSE(openings.are_done());
  openings.retry();
  CHECK(tried == 1);
  CHECK(openings.are_done());
}

TEST_CASE("what cannot be opened is tried again, unless it never can be") {
  for (const auto& [code, tries] :
       {std::pair(base::ErrorCode::kTransient, 3), std::pair(base::ErrorCode::kUnavailable, 1),
        std::pair(base::ErrorCode::kPermission, 1)}) {
    int tried = 0;
    const base::ErrorCode failure = code;
    agent::Openings openings;
    openings.add([&tried, failure]() -> base::Result<void> {
      if (++tried == 3) return {};
      return base::fail(failure, "a test");
    });
    CHECK(openings.are_done() == (tries == 1));
    for (int i = 0; i < 4; ++i) openings.retry();
    CHECK(openings.are_done());
    CHECK(tried == tries);
  }
}
