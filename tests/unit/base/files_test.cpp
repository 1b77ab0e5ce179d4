// SPDX-License-Identifier: Apache-2.0
#include "base/files.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "base/text.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka::base;

TEST_CASE("a file is replaced completely or not at all") {
  const ka::tests::TempDir dir;
  const auto path = dir.path() / "state.json";
  REQUIRE(write_atomically(path, "one"));
  REQUIRE(write_atomically(path, "two"));
  dir.write(".state.json.new", "half");  // what a crash has left
  REQUIRE(write_atomically(path, "two"));
  CHECK_FALSE(std::filesystem::exists(dir.path() / ".state.json.new"));
  CHECK(*read_file(path) == "two");
  CHECK(list_directory(dir.path())->size() == 1);
  CHECK_FALSE(write_atomically(dir.path() / "missing" / "state.json", "x"));
}

TEST_CASE("a failed read gives the kind of failure") {
  const ka::tests::TempDir dir;
  CHECK(read_file(dir.path() / "none").error().code == ErrorCode::kGone);
  dir.write("big", std::string(5000, 'x'));
  CHECK(read_file(dir.path() / "big", 4000).error().code == ErrorCode::kInvalid);
  CHECK(read_file(dir.path() / "big")->size() == 5000);
}

TEST_CASE("errors show hostile paths escaped, and no more than the longest path") {
  const ka::tests::TempDir dir;
  const auto message = [&](const std::string& name) {
    return read_file(dir.path() / name).error().message;
  };
  CHECK(message("a\n\x1b[31m\xff\xe2\x80\xae")
            .ends_with("a\\x0a\\x1b[31m\\xff\\u{202e}: No such file or directory"));
  CHECK(fail(ErrorCode::kInvalid, "\x9b").value() == Error{ErrorCode::kInvalid, "\\x9b", 0});
  CHECK(error_in("a\n", {ErrorCode::kGone, "gone", 2}) ==
        Error{ErrorCode::kGone, "a\\x0a: gone", 2});
  CHECK(message(std::string(kMaxPath, '\n')).size() <= kMaxPath + kMaxSentence);
}

TEST_CASE("only the numbers in a directory are listed") {
  const ka::tests::TempDir dir;
  dir.write("12/stat", "");
  dir.write("7/stat", "");
  dir.write("self", "");
  dir.write("7x", "");
  CHECK(*list_numbers(dir.path()) == std::vector<int>{7, 12});
}

TEST_CASE("only directories are listed where those are wanted") {
  const ka::tests::TempDir dir;
  dir.write("b/file", "");
  dir.write("a/file", "");
  dir.write("file", "");
  dir.link("link", "a");
  CHECK(*list_subdirectories(dir.path()) == std::vector<std::string>{"a", "b"});
  CHECK(is_gone(list_subdirectories(dir.path() / "none")));
  CHECK_FALSE(is_gone(list_subdirectories(dir.path() / "file")));
}

TEST_CASE("a number must fill the whole text") {
  CHECK(*parse_number("42\n") == 42);
  CHECK_FALSE(parse_number("42 "));
  CHECK_FALSE(parse_number(""));
  CHECK_FALSE(parse_number("0x1"));
}

TEST_CASE("errno classes decide what follows a failure") {
  CHECK(classify_errno(ESRCH) == ErrorCode::kGone);
  CHECK(classify_errno(EINVAL) == ErrorCode::kTransient);
  CHECK(classify_errno(EROFS) == ErrorCode::kPermission);
  CHECK(classify_errno(EDOM) == ErrorCode::kInternal);
}

TEST_CASE("a FIFO in the place of a temporary file does not block its writer") {
  const ka::tests::TempDir dir;
  REQUIRE(::mkfifo((dir.path() / ".file.new").c_str(), 0600) == 0);
  CHECK_FALSE(write_atomically(dir.path() / "file", "text"));
}

TEST_CASE("other programs' files are read only if they are regular files") {
  const ka::tests::TempDir dir;
  const auto fifo = dir.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::filesystem::path& path : {fifo, dir.path(), std::filesystem::path("/dev/zero")}) {
    CAPTURE(path);
    const auto text = read_regular_file(path);
    REQUIRE_FALSE(text);
    CHECK(text.error().code == ErrorCode::kInvalid);
    CHECK(text.error().message == path.string() + ": is not a regular file");
  }
  CHECK(read_regular_file(dir.path() / "none").error().code == ErrorCode::kGone);
  dir.write("file", std::string(5000, 'x'));
  CHECK(read_regular_file(dir.path() / "file", 5000)->size() == 5000);
  CHECK(read_regular_file(dir.path() / "file", 4999).error().code == ErrorCode::kInvalid);
}
