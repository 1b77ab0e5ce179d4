// SPDX-License-Identifier: Apache-2.0
#include "base/process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/boot_offset.hpp"
#include "base/pidfd.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka::base;

namespace {

const std::string kTail =
    " S 40 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 2 3 18446744073709551615 0\n";

}  // namespace

TEST_CASE("a stat line is parsed whatever the thread's name") {
  for (const std::string name : {"qemu", "CPU 0/KVM", "a) S 1 (b", ")", ""}) {
    const auto stat = parse_thread_stat("41 (" + name + ")" + kTail);
    REQUIRE(stat);
    CHECK(stat->tid == 41);
    CHECK(stat->comm == name);
    CHECK(stat->ppid == 40);
    CHECK(stat->start_time == 987654);
  }
}

TEST_CASE("a thread bound by the kernel is recognized by its flags") {
  const auto movable = [](const std::string& flags) {
    return parse_thread_stat("41 (x) S 40 1 1 0 -1 " + flags + " 1 0 0 0 0 0 0 0 20 0 1 0 7 2 3\n")
        ->movable;
  };
  CHECK(movable("4194560"));
  CHECK_FALSE(movable("71303424"));  // with 0x04000000
}

TEST_CASE("a malformed stat line is an error") {
  for (const std::string& text :
       std::vector<std::string>{"", "41", "41 (x", "x (y)" + kTail, "41 (x) S 1 2 3"}) {
    CHECK_FALSE(parse_thread_stat(text));
  }
}

TEST_CASE("only an offset that start times show in full is subtracted from them") {
  using std::chrono::seconds;
  const auto boottime = [](const std::string& offset) {
    return parse_boot_offset("monotonic           7         5\nboottime   " + offset + "\n");
  };
  CHECK(boottime("0         0").value() == seconds(0));
  CHECK(boottime("100000         0").value() == seconds(100000));
  CHECK(boottime("1 500000000").value() == std::chrono::milliseconds(1500));
  for (const char* shift : {"-1 0", "0 1", "100 9999999", "-1 999999999", "x", "3"}) {
    CAPTURE(shift);
    CHECK(boottime(shift).error().code == ErrorCode::kUnavailable);
  }
  CHECK_FALSE(parse_boot_offset(""));
  CHECK_FALSE(parse_boot_offset("monotonic 0 0\n"));
}

TEST_CASE("the test's own process is found in the real /proc") {
  const ProcFs proc;
  const auto stat = proc.stat(::getpid());
  REQUIRE(stat);
  CHECK(stat->tid == ::getpid());
  CHECK(stat->ppid == ::getppid());
  CHECK_FALSE(proc.threads(::getpid())->empty());
  CHECK(proc.stat(0x3fffffff).error().code == ErrorCode::kGone);
}

TEST_CASE("the cgroup of a process is found with either cgroup version") {
  const ka::tests::TempDir dir;
  dir.write("5/cgroup", "9:name=systemd:/s\n3:cpuset,cpu:/kata_1\n0::/a:b\n");
  const ProcFs proc(dir.path());
  CHECK(*proc.cgroup(5, "") == "/a:b");
  CHECK(*proc.cgroup(5, "cpuset") == "/kata_1");
  CHECK(proc.cgroup(5, "set").error().code == ErrorCode::kNotFound);
}

TEST_CASE("control characters in a thread's name are escaped") {
  const auto stat = parse_thread_stat("41 (\x1b[2J\xff\nCPU 0/KVM)" + kTail);
  REQUIRE(stat);
  CHECK(stat->comm == "\\x1b[2J\\xff\\x0aCPU 0/KVM");
}

TEST_CASE("a cgroup whose name is not printable is not used") {
  const ka::tests::TempDir dir;
  dir.write("5/cgroup", "0::/pods/a\x1b[2Jb\n");
  const auto path = ProcFs(dir.path()).cgroup(5, "");
  REQUIRE_FALSE(path);
  CHECK(path.error().code == ErrorCode::kInvalid);
  CHECK(path.error().message.find("/pods/a\\x1b[2Jb") != std::string::npos);
}

TEST_CASE("a pidfd says that its process has ended, and nothing else does") {
  const int pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  const Fd process = open_pidfd(pid);
  CHECK_FALSE(has_ended(process.get()));
  CHECK_FALSE(has_ended(-1));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  CHECK(has_ended(process.get()));
  CHECK_FALSE(open_pidfd(pid));
}
