// SPDX-License-Identifier: Apache-2.0
// State files and their directory, which others remove or replace while a daemon runs.
#include "affinity/state/directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "affinity/state/store.hpp"
#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

using namespace ka;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

namespace {

struct Scene {
  Scene() {
    auto lock = state::Directory::claim(path);
    REQUIRE(lock);
    store.emplace(path, "boot", log, std::move(*lock));
    store->load();
    for (const auto* pod : {"s1", "s2"}) REQUIRE(store->save(saved(pod)));
    REQUIRE(store->find_missing().value().empty());
  }

  static state::Saved saved(const std::string& pod) {
    state::Saved saved;
    saved.pod.id = pod;
    return saved;
  }
  Names save_missing() {
    const auto missing = store->find_missing();
    REQUIRE(missing);
    for (const std::string& pod : *missing) CHECK(store->save(saved(pod)));
    return *missing;
  }
  Names files() const { return *base::list_directory(path); }
  bool has_logged(const std::string& text) const { return lines.find(text) != std::string::npos; }

  tests::TempDir dir;
  fs::path path = dir.path() / "state";
  std::string lines;
  log::Log log = tests::text_log(log::Level::kWarning, lines);
  std::optional<state::Store> store;
};

const Names kAll{"lock", "s1.json", "s2.json"};

}  // namespace

TEST_CASE("a state file that somebody removes is reported, and written again") {
  Scene scene;
  fs::remove(scene.path / "s1.json");
  CHECK(scene.save_missing() == Names{"s1"});
  CHECK(scene.files() == kAll);
  CHECK(scene.has_logged("removed by another program"));
  scene.lines.clear();
  CHECK(scene.save_missing().empty());
  REQUIRE(scene.store->remove("s2"));
  CHECK(scene.save_missing().empty());
  CHECK(scene.lines.empty());
}

TEST_CASE("a state directory that was replaced is made private, locked, and filled again") {
  const bool is_checked_first = GENERATE(true, false);
  Scene scene;
  const auto aside = scene.dir.path() / "aside";
  fs::rename(scene.path, aside);
  SECTION("nothing is there") {}
  SECTION("others can write it") {
    fs::create_directory(scene.path);
    REQUIRE(::chmod(scene.path.c_str(), 0777) == 0);
  }
  SECTION("a copy with older files") { fs::copy(aside, scene.path); }
  if (is_checked_first) {
    CHECK(scene.save_missing() == Names{"s1", "s2"});
  } else {
    CHECK(scene.store->save(Scene::saved("s1")));
    CHECK(scene.save_missing() == Names{"s2"});
  }
  CHECK(scene.files() == kAll);
  CHECK((fs::status(scene.path).permissions() & fs::perms(0022)) == fs::perms::none);
  CHECK(state::Directory::claim(scene.path).error().code == base::ErrorCode::kConflict);
  CHECK(scene.has_logged("state directory was replaced"));

  fs::remove_all(scene.path);
  fs::rename(aside, scene.path);
  CHECK(scene.save_missing() == Names{"s1", "s2"});
  CHECK(state::Directory::claim(scene.path).error().code == base::ErrorCode::kConflict);
}

TEST_CASE("a state directory whose lock was removed is locked again, or is another daemon's") {
  Scene scene;
  fs::remove(scene.path / "lock");
  SECTION("nobody has taken it") {
    CHECK(scene.save_missing().empty());
    CHECK(state::Directory::claim(scene.path).error().code == base::ErrorCode::kConflict);
  }
  SECTION("another daemon has") {
    const auto other = state::Directory::claim(scene.path);
    REQUIRE(other);
    CHECK(scene.store->find_missing().error().code == base::ErrorCode::kConflict);
  }
}

TEST_CASE("what may not be used in place of the state directory is neither read nor written") {
  Scene scene;
  fs::rename(scene.path, scene.dir.path() / "aside");
  SECTION("another user's directory") {
    if (::geteuid() != 0) return;
    fs::create_directory(scene.path);
    REQUIRE(::chown(scene.path.c_str(), 65534, 65534) == 0);
  }
  SECTION("a directory of another daemon") {
    const auto other = state::Directory::claim(scene.path);
    REQUIRE(other);
    CHECK_FALSE(scene.store->find_missing());
    CHECK_FALSE(scene.store->save(Scene::saved("s1")));
    CHECK(scene.files() == Names{"lock"});
    return;
  }
  SECTION("a file") { scene.dir.write("state", ""); }
  CHECK_FALSE(scene.store->find_missing());
  CHECK_FALSE(scene.store->save(Scene::saved("s1")));
  CHECK_FALSE(scene.store->save(Scene::saved("s3")));
  fs::remove_all(scene.path);
  CHECK(scene.save_missing() == Names{"s1", "s2"});
}
