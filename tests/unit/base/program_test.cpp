// SPDX-License-Identifier: Apache-2.0
#include "base/program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>

#include "base/fd.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using base::Command;
using base::run_program;

namespace {

Command shell(const std::string& script) {
  return {.file = "/bin/sh", .words = {"sh", "-c", script}};
}

/// Runs one that hangs, and has to be ended. The error's reason.
std::string end_of(Command command) {
  const auto ran = run_program(command);
  REQUIRE_FALSE(ran);
  CHECK(ran.error().code == base::ErrorCode::kTransient);
  return ran.error().message;
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

TEST_CASE("a program that hangs is terminated in time") {
  const char* script =
      GENERATE("sleep 30; true", "exec sleep 30", "exec sleep 30 > /dev/null", "sleep 30 &");
  CAPTURE(script);
  Command command = shell(std::string("exec 2> /dev/null; ") + script);
  command.wait_limit = base::WaitLimit::of(std::chrono::milliseconds(300));
  CHECK(end_of(command) == "/bin/sh was terminated: no response in time");
}

TEST_CASE("a program is terminated when its caller is interrupted") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const base::Fd read(ends[0]), write(ends[1]);
  REQUIRE(::write(write.get(), "x", 1) == 1);
  Command command = shell("exec sleep 30");
  command.wait_limit = {.deadline = base::Deadline::none(), .interrupt = read.get()};
  CHECK(end_of(command) == "/bin/sh was terminated: interrupted by a signal");
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
