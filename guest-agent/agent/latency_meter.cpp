// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/latency_meter.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <sstream>
#include <thread>

#include "base/files.hpp"
#include "guest-agent/agent/kernel.hpp"

namespace ka::agent {
namespace {

using guest::CpuLatency;
using guest::LatencyRequest;

constexpr std::uint64_t kSecond = 1000000000;

std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void sleep_until(std::uint64_t when) {
  const timespec time{.tv_sec = static_cast<time_t>(when / kSecond),
                      .tv_nsec = static_cast<long>(when % kSecond)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

/// The eighth number of the line "cpuN ..." of /proc/stat, in clock ticks (proc_stat(5)).
std::uint64_t stolen_of(const std::filesystem::path& proc, int cpu) {
  std::istringstream lines(base::read_file(proc / "stat").value_or(""));
  const std::string name = "cpu" + std::to_string(cpu);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string first;
    std::array<std::uint64_t, 8> ticks{};
    fields >> first;
    if (first != name) continue;
    for (std::uint64_t& number : ticks) fields >> number;
    const auto in_second = static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
    return ticks.back() * (kSecond / in_second);
  }
  return 0;
}

/// As cyclictest does: sleeps until a time, and looks how late it is.
void measure(const LatencyRequest& request, CpuLatency& result) {
  using std::chrono::nanoseconds;
  const auto interval = static_cast<std::uint64_t>(nanoseconds(request.interval).count());
  const std::uint64_t start = now();
  const std::uint64_t end =
      start + static_cast<std::uint64_t>(nanoseconds(request.duration).count());
  for (std::uint64_t next = start + interval; next <= end;) {
    sleep_until(next);
    const std::uint64_t late = now() - std::min(next, now());
    result.latencies.add(late);
    result.longest = std::max(result.longest, late);
    // What it slept through is not slept through again.
    next += interval * (late / interval + 1);
  }
}

/// The lowest priority that is before all ordinary threads: the workload waits microseconds for it.
bool be_realtime() {
  const sched_param lowest{.sched_priority = ::sched_get_priority_min(SCHED_FIFO)};
  return ::sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;
}

guest::Latencies measure_all(const std::vector<LatencyMeter::Target>& targets,
                             const LatencyRequest& request, const std::filesystem::path& proc) {
  guest::Latencies all;
  all.cpus.resize(targets.size());
  std::atomic<std::size_t> realtime = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    threads.emplace_back([&, i] {
      CpuLatency& result = all.cpus[i];
      const LatencyMeter::Target& target = targets[i];
      result.hardware_id = target.hardware_id;
      if (Calls().set_affinity(0, policy::GuestCpuSet{target.cpu}) != 0) return;
      if (be_realtime()) ++realtime;
      const std::uint64_t stolen = stolen_of(proc, target.cpu);
      measure(request, result);
      result.stolen = stolen_of(proc, target.cpu) - stolen;
    });
  }
  for (std::thread& thread : threads) thread.join();
  all.realtime = realtime == targets.size();
  return all;
}

/// What cannot leave measures nothing on CPUs that its cgroup does not allow.
void enter_root(const std::filesystem::path& cpusets) {
  if (cpusets.empty()) return;
  const base::Fd file(::open((cpusets / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const ssize_t written = ::write(file.get(), "0", 1);
}

/// In the child. It holds none of the agent's connections open.
[[noreturn]] void run_child(int pipe, const std::vector<LatencyMeter::Target>& targets,
                            const LatencyRequest& request, const std::filesystem::path& proc) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr int kFirst = STDERR_FILENO + 1;
  ::dup2(pipe, kFirst);
  ::syscall(SYS_close_range, kFirst + 1, ~0U, 0);
  const std::string text = guest::encode(measure_all(targets, request, proc));
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(kFirst, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) ::_exit(1);
    rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  ::_exit(0);
}

}  // namespace

LatencyMeter::~LatencyMeter() { end(); }

std::optional<std::uint64_t> LatencyMeter::start(const std::vector<Target>& targets,
                                                 const LatencyRequest& request,
                                                 const std::filesystem::path& cpusets) {
  std::array<int, 2> ends{};
  if (pipe_ || ::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  base::Fd reading(ends[0]), writing(ends[1]);
  process_ = ::fork();
  if (process_ == 0) {
    enter_root(cpusets);
    run_child(writing.get(), targets, request, proc_);
  }
  if (process_ < 0) return std::nullopt;
  pipe_ = std::move(reading);
  text_.clear();
  return ++number_;
}

bool LatencyMeter::read() {
  std::array<char, 16384> buffer;
  const ssize_t size = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (size < 0 && errno == EINTR) return false;
  if (size > 0) {
    text_.append(buffer.data(), static_cast<std::size_t>(size));
    return false;
  }
  end();
  return true;
}

std::optional<std::string> LatencyMeter::result(std::uint64_t number) const {
  if (number != number_ || pipe_) return std::nullopt;
  return text_;
}

void LatencyMeter::end() {
  if (!pipe_) return;
  pipe_.reset();
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace ka::agent
