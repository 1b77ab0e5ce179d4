// SPDX-License-Identifier: Apache-2.0
// The end of real processes.
#include "affinity/helper/vmm_exits.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "tests/catch.hpp"

using namespace ka;
using namespace ka::helper;
using namespace std::chrono_literals;
using policy::ThreadKey;

namespace {

/// A process that sleeps until it is killed.
struct Sleeper {
  Sleeper() : pid(::fork()) {
    if (pid == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  ~Sleeper() { end(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void end() {
    if (pid == 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = 0;
  }
  ThreadKey key() const { return {pid, pid, base::ProcFs("/proc").stat(pid)->start_time}; }

  pid_t pid;
};

struct Ended {
  VmmExits::Ended callback() {
    return [this](const ThreadKey& vmm) {
      const std::lock_guard lock(mutex);
      vmms.push_back(vmm);
      changed.notify_all();
    };
  }
  bool within(std::chrono::milliseconds time, std::size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [&] { return vmms.size() >= count; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ThreadKey> vmms;
};

}  // namespace

TEST_CASE("the end of a VMM is reported once, and of those that are watched alone") {
  Ended ended;
  Sleeper one, two, other, past;
  const ThreadKey first = one.key(), second = two.key(), gone = past.key();
  past.end();
  VmmExits exits(VmmThreads("/proc"), ended.callback());
  exits.watch({first, second, gone});
  REQUIRE(ended.within(10s, 1));
  exits.watch({first, second});
  other.end();
  one.end();
  REQUIRE(ended.within(10s, 2));
  CHECK(ended.vmms == std::vector{gone, first});
  exits.watch({});
  two.end();
  CHECK_FALSE(ended.within(200ms, 3));
}

TEST_CASE("a VMM whose files cannot be seen has not ended") {
  Ended ended;
  Sleeper one;
  const ThreadKey living = one.key();
  VmmExits exits(VmmThreads("/nowhere"), ended.callback());  // ENOENT
  exits.watch({living});
  CHECK_FALSE(ended.within(200ms, 1));
  one.end();
  exits.watch({living});
  CHECK(ended.within(10s, 1));
}

TEST_CASE("a VMM that ended before it is watched is reported") {
  Ended ended;
  Sleeper one, two;
  const ThreadKey gone = one.key();
  one.end();
  ThreadKey replaced = two.key();  // another process has its number
  replaced.start_time -= 1;
  VmmExits exits(VmmThreads("/proc"), ended.callback());
  exits.watch({gone, replaced});
  REQUIRE(ended.within(10s, 2));
  CHECK(ended.vmms == std::vector{gone, replaced});
}
