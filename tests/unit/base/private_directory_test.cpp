// SPDX-License-Identifier: Apache-2.0
#include "base/private_directory.hpp"

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

namespace fs = std::filesystem;
using ka::base::make_private_directory;
using ka::base::make_private_file;

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

TEST_CASE("a file writable by others is made private, once") {
  const ka::tests::TempDir dir;
  const fs::path file = dir.path() / "file";
  CHECK(ka::base::is_gone(make_private_file(file)));
  dir.write("file", "");
  fs::permissions(file, fs::perms(0666));
  CHECK(make_private_file(file) == true);
  CHECK(fs::status(file).permissions() == fs::perms(0644));
  CHECK(make_private_file(file) == false);
}

TEST_CASE("what a link leads to keeps its mode") {
  const ka::tests::TempDir dir;
  dir.write("file", "");
  fs::permissions(dir.path() / "file", fs::perms(0666));
  dir.link("link", "file");
  CHECK(make_private_file(dir.path() / "link") == false);
  CHECK(fs::status(dir.path() / "file").permissions() == fs::perms(0666));
}
