// SPDX-License-Identifier: Apache-2.0
#include "base/thread_stats.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/catch.hpp"
#include "tests/fake_node.hpp"

using namespace ka;
using base::ErrorCode;
using base::ThreadStats;

TEST_CASE("the test's own threads are read repeatedly") {
  ThreadStats stats("/proc");
  const int pid = ::getpid();
  const auto threads = stats.threads(pid);
  REQUIRE(threads);
  CHECK(threads->front() == pid);
  const auto first = stats.read(pid, pid);
  REQUIRE(first);
  CHECK(first->ppid == ::getppid());
  CHECK(stats.read(pid, pid)->start_time == first->start_time);
  CHECK(stats.threads(0x3fffffff).error().code == ErrorCode::kGone);
  CHECK(stats.read(0x3fffffff, 0x3fffffff).error().code == ErrorCode::kGone);
}

TEST_CASE("a process that has ended is gone, even if its file is open") {
  const int child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ThreadStats stats("/proc");
  CHECK(stats.read(child, child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(stats.read(child, child).error().code == ErrorCode::kGone);
}

TEST_CASE("more threads are read than files are kept open") {
  const tests::FakeNode node;
  const int many = static_cast<int>(ThreadStats::kMostOpen) + 5;
  node.process(10, 1, "qemu", "/usr/bin/qemu");
  for (int tid = 11; tid < 10 + many; ++tid) node.thread(10, tid, "CPU/KVM", 1, 500);
  ThreadStats stats(node.proc());
  const auto threads = stats.threads(10);
  REQUIRE(threads->size() == static_cast<std::size_t>(many));
  for (int pass = 0; pass < 2; ++pass) {
    for (const int tid : *threads) CHECK(stats.read(10, tid)->tid == tid);
  }
}

TEST_CASE("a line of another thread is rejected") {
  const tests::FakeNode node;
  node.process(10, 1, "qemu", "/usr/bin/qemu");
  std::filesystem::create_directories(node.proc() / "10/task/12");
  std::filesystem::copy(node.proc() / "10/task/10/stat", node.proc() / "10/task/12/stat");
  CHECK(ThreadStats(node.proc()).read(10, 12).error().code == ErrorCode::kInvalid);
}
