// SPDX-License-Identifier: Apache-2.0
// State files that are good JSON with other values than were written.
#include <string>

#include "affinity/state/store.hpp"
#include "tests/catch.hpp"
#include "tests/flipped_bits.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/state/sample.hpp"

using namespace ka;

namespace {

/// Of the kernel's form: with another digit it names another boot.
const std::string kPresent = "5f0f1c2e-0000-4000-8000-000000000000";

}  // namespace

TEST_CASE("a state file with any bit flipped is damaged, not of another boot and not believed") {
  const std::string good = state::to_text(tests::sample(), kPresent);
  REQUIRE(state::from_text(good, kPresent));
  tests::for_each_flipped_bit(good, [](const std::string& text) {
    const auto read = state::from_text(text, kPresent);
    return !read && read.error().code == base::ErrorCode::kInvalid;
  });
}

TEST_CASE("a state file with another boot by a flipped bit is set aside, its pod lost") {
  const tests::TempDir dir;
  std::string lines;
  const log::Log log = tests::text_log(log::Level::kInfo, lines);
  std::string text = state::to_text(tests::sample(), kPresent);
  text[text.find(kPresent)] = '4';
  dir.write("s1.json", text);
  const auto loaded = state::Store(dir.path(), kPresent, log).load();
  CHECK(loaded.pods.empty());
  REQUIRE(loaded.lost.size() == 1);
  CHECK(loaded.lost[0].pod == "s1");
  CHECK(loaded.lost[0].damaged);
  CHECK(tests::contains(lines, "checksum: not that of the content"));
}

TEST_CASE("a state file of an earlier version, without a checksum, is read") {
  const std::string text = tests::without_checksum(state::to_text(tests::sample(), kPresent));
  REQUIRE_FALSE(tests::contains(text, "checksum"));
  const auto read = state::from_text(text, kPresent);
  REQUIRE(read);
  CHECK(*read == tests::sample());
}
