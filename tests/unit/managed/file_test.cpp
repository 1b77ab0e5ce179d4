// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/file.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/flipped_bits.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"
#include "tests/unit/managed/scene.hpp"

using namespace ka;
using policy::managed::Saved;
using tests::container;

TEST_CASE("a file that could not be read is not overwritten") {
  const tests::TempDir dir;
  SECTION("as after EIO") { dir.link(std::string(managed::kFile), std::string(managed::kFile)); }
  SECTION("behind a link that leads nowhere") { dir.link(std::string(managed::kFile), "nowhere"); }
  managed::AllocationFile file(dir.path(), "boot");
  REQUIRE_FALSE(file.load());
  const auto saved = file.save({});
  REQUIRE_FALSE(saved);
  CHECK(saved.error().code == base::ErrorCode::kUnavailable);
}

TEST_CASE("the file of another boot is forgotten, a damaged one set aside") {
  const auto saved = policy::managed::Saved{.entry = {.about = container("a", 2).candidate}};
  const std::string text = managed::to_text({saved}, "boot");
  REQUIRE(managed::from_text(text, "boot"));
  CHECK(*managed::from_text(text, "boot") == std::vector{saved});
  const std::string other_boot = "5f0f1c2e-0000-4000-8000-000000000000";
  CHECK(managed::from_text(text, "other").error().code == base::ErrorCode::kInvalid);
  CHECK(managed::from_text(managed::to_text({saved}, other_boot), "boot").error().code ==
        base::ErrorCode::kGone);
  CHECK(managed::from_text("{}", "boot").error().code == base::ErrorCode::kInvalid);
  const tests::TempDir dir;
  dir.write("allocations", text.substr(0, text.size() / 2));
  managed::AllocationFile file(dir.path(), "boot");
  CHECK_FALSE(file.load());
  CHECK(std::filesystem::exists(dir.path() / "allocations.unreadable"));
  CHECK(file.load());
}

TEST_CASE("allocations with any bit flipped are damaged, not of another boot and not believed") {
  const std::string boot = "5f0f1c2e-0000-4000-8000-000000000000";
  const std::vector saved{Saved{.entry = {.about = container("a", 2).candidate}}};
  const std::string good = managed::to_text(saved, boot);
  REQUIRE(managed::from_text(good, boot));
  tests::for_each_flipped_bit(good, [&](const std::string& text) {
    const auto read = managed::from_text(text, boot);
    return !read && read.error().code == base::ErrorCode::kInvalid;
  });
  CHECK(managed::from_text(tests::without_checksum(good), boot) == saved);
}

TEST_CASE("allocations of another user are set aside, not read") {
  if (::geteuid() != 0) return;  // only root can give a file away
  constexpr uid_t kStranger = 65534;
  const tests::TempDir dir;
  const auto path = dir.path() / managed::kFile;
  managed::AllocationFile file(dir.path(), "boot");
  REQUIRE(file.save({Saved{.entry = {.about = container("a", 2).candidate}}}));
  REQUIRE(::chown(path.c_str(), kStranger, kStranger) == 0);
  CHECK(file.load().error().code == base::ErrorCode::kInvalid);
  CHECK(std::filesystem::exists(dir.path() / "allocations.unreadable"));
}

TEST_CASE("allocations of the largest size are written and read back, a byte more is neither") {
  const tests::TempDir dir;
  const auto path = dir.path() / managed::kFile;
  managed::AllocationFile file(dir.path(), "boot");
  const Saved small{.entry = {.about = container("a", 2).candidate}};
  REQUIRE(file.save({small}));
  const std::size_t written = std::filesystem::file_size(path);
  Saved large = small;
  large.entry.about.name.append(managed::kMaxFile - written, 'n');
  REQUIRE(file.save({large}));
  CHECK(std::filesystem::file_size(path) == managed::kMaxFile);
  large.entry.about.name += 'n';
  CHECK_FALSE(file.save({large}));
  const std::string text = tests::without_checksum(managed::to_text({small}, "boot"));
  std::ofstream(path) << text << std::string(managed::kMaxFile - text.size(), ' ');
  CHECK(file.load() == std::vector{small});
  std::ofstream(path, std::ios::app) << ' ';
  CHECK_FALSE(file.load());
}
