// SPDX-License-Identifier: Apache-2.0
// A thread of ours on one CPU: what the ledger says of it against what the scheduler does.
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "affinity/cli/noise/decoder.hpp"
#include "affinity/cli/noise/interruptions.hpp"
#include "affinity/cli/noise/recorder.hpp"
#include "base/clock.hpp"
#include "tests/catch.hpp"

using namespace ka::cli::noise;

namespace {

int last_cpu() {
  cpu_set_t mask;
  REQUIRE(::sched_getaffinity(0, sizeof mask, &mask) == 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) last = cpu;
  }
  return last;
}

Nanoseconds run_time(int tid) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/schedstat");
  long long time = 0;
  file >> time;
  return Nanoseconds(time);
}

/// Works and sleeps in turn on one CPU.
class Worker {
 public:
  explicit Worker(int cpu)
      : thread_([this, cpu] {
          cpu_set_t mask;
          CPU_ZERO(&mask);
          CPU_SET(static_cast<std::size_t>(cpu), &mask);
          ::sched_setaffinity(0, sizeof mask, &mask);
          tid_ = static_cast<int>(::syscall(SYS_gettid));
          while (!done_) work();
        }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Worker() {
    done_ = true;
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int tid() const { return tid_; }
  int turns() const { return turns_; }

 private:
  void work() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < end) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    ++turns_;
  }

  std::atomic<int> tid_ = 0, turns_ = 0;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a thread's time on a CPU is what the scheduler says") {
  ::mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr);
  const auto tracefs = find_tracefs("/sys");
  if (!tracefs) {
    std::puts("skipped: no tracefs");
    return;
  }
  const auto decoder = Decoder::read(*tracefs);
  REQUIRE(decoder);
  const int cpu = last_cpu();
  const ka::base::Clock clock;
  auto recorder = Recorder::open(*decoder, clock, {cpu});
  REQUIRE(recorder);
  const Worker worker(cpu);
  const Nanoseconds start = recorder->start();
  const Nanoseconds ran_before = run_time(worker.tid());
  const int turns_before = worker.turns();
  Interruptions seen({cpu}, start);
  const auto handle = [&](const TraceEvent& event) { seen.add(event); };
  recorder->record(std::chrono::milliseconds(500), handle);
  const int turns = worker.turns() - turns_before;
  const Nanoseconds ran = run_time(worker.tid()) - ran_before;
  const Nanoseconds end = recorder->stop(handle);
  seen.finish(end);

  const CpuUsage& usage = seen.cpus().at(cpu);
  REQUIRE(usage.lost == 0);
  const Usage& ours = usage.causes.at({CauseKind::kTask, worker.tid()});
  std::printf("%d turns: %llu times on the CPU, %llu not reported, %.1f ms; schedstat %.1f ms\n",
              turns, static_cast<unsigned long long>(ours.count),
              static_cast<unsigned long long>(usage.missed),
              std::chrono::duration<double, std::milli>(ours.total).count(),
              std::chrono::duration<double, std::milli>(ran).count());
  CHECK(ours.count + 1 >= static_cast<std::uint64_t>(turns));
  // The scheduler counts interrupts for the task that they interrupt.
  CHECK(ours.total * 10 < ran * 11);
  // A kernel that leaves out switches from idle lets us see less.
  if (usage.missed == 0) CHECK(ours.total * 10 > ran * 7);
}
