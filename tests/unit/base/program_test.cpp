// SPDX-License-Identifier: Apache-2.0
#include "base/program.hpp"

#include <sys/wait.h>

#include <csignal>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using base::Command;
using base::run_program;

namespace {

Command shell(const std::string& script) {
  return {.file = "/bin/sh", .words = {"sh", "-c", script}};
}

}  // namespace

TEST_CASE("a program's output is captured, up to a limit") {
  Command command = shell("printf 12345");
  command.most_output = 5;
  const auto ran = run_program(command);
  REQUIRE(ran);
  CHECK(ran->status == 0);
  CHECK(ran->output == "12345");
  command.most_output = 4;
  const auto more = run_program(command);
  REQUIRE_FALSE(more);
  CHECK(more.error().code == base::ErrorCode::kInvalid);
}

TEST_CASE("a program may print as much as the limit of those that name none, and no byte more") {
  const auto print = [](std::size_t size) {
    return run_program(shell("head -c " + std::to_string(size) + " /dev/zero"));
  };
  const auto ran = print(base::kMostOutput);
  REQUIRE(ran);
  CHECK(ran->output.size() == base::kMostOutput);
  CHECK_FALSE(print(base::kMostOutput + 1));
}

TEST_CASE("a program with endless output is terminated") {
  const auto ran = run_program({.file = "/bin/cat", .words = {"cat", "/dev/zero"}});
  REQUIRE_FALSE(ran);
  CHECK(ran.error().message == "/bin/cat prints more than 1048576 bytes and was terminated");
}

TEST_CASE("input, environment, directory and standard error are as requested") {
  const tests::TempDir dir;
  Command command = shell("cat; echo \"$A$HOME\"; pwd; echo trouble >&2; exit 3");
  command.input = "given\n";
  command.environment = {"A=b"};
  command.directory = dir.path();
  command.catches_errors = true;
  const auto ran = run_program(command);
  REQUIRE(ran);
  CHECK(WEXITSTATUS(ran->status) == 3);
  CHECK(ran->output == "given\nb\n" + std::filesystem::canonical(dir.path()).string() + "\n");
  CHECK(ran->errors == "trouble\n");
}

TEST_CASE("how a program ended is reported, also if it could not start") {
  CHECK(WTERMSIG(run_program(shell("kill -TERM $$"))->status) == SIGTERM);
  CHECK(WEXITSTATUS(run_program({.file = "/nowhere", .words = {"x"}})->status) == 127);
  Command command = shell("true");
  command.directory = "/nowhere";
  CHECK(WEXITSTATUS(run_program(command)->status) == 127);
}

TEST_CASE("a program is the first executable file of its name in the directories") {
  const tests::TempDir dir;
  dir.write("a/tool", "not executable");
  std::filesystem::create_directories(dir.path() / "b/tool");
  dir.write("c/tool", "#!/bin/sh\n");
  std::filesystem::permissions(dir.path() / "a/tool", std::filesystem::perms::owner_read);
  std::filesystem::permissions(dir.path() / "c/tool", std::filesystem::perms::owner_all);
  const std::vector<std::filesystem::path> places = {dir.path() / "a", dir.path() / "b",
                                                     dir.path() / "c"};
  CHECK(base::find_program("tool", places) == dir.path() / "c/tool");
  CHECK_FALSE(base::find_program("other", places));
}
