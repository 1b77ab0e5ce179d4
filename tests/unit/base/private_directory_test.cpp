// SPDX-License-Identifier: Apache-2.0
#include "base/private_directory.hpp"

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

namespace fs = std::filesystem;
using ka::base::make_private_directory;

TEST_CASE("a missing directory is created for its owner only") {
  const ka::tests::TempDir dir;
  CHECK(make_private_directory(dir.path() / "run" / "state") == false);
  CHECK(fs::status(dir.path() / "run" / "state").permissions() == fs::perms::owner_all);
}

TEST_CASE("a directory writable by others is made private, once") {
  const ka::tests::TempDir dir;
  fs::permissions(dir.path(), fs::perms::all);
  CHECK(make_private_directory(dir.path()) == true);
  CHECK(fs::status(dir.path()).permissions() == fs::perms(0755));
  CHECK(make_private_directory(dir.path()) == false);
}

TEST_CASE("anything but a directory is rejected") {
  const ka::tests::TempDir dir;
  dir.write("file", "");
  CHECK_FALSE(make_private_directory(dir.path() / "file"));
  CHECK_FALSE(make_private_directory(dir.path() / "file" / "state"));
}
