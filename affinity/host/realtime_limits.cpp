// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/realtime_limits.hpp"

#include <sstream>
#include <string>
#include <utility>

#include "base/files.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

std::optional<long long> read_number(const fs::path& file) {
  const auto text = base::read_file(file);
  const auto number = text ? base::parse_number(*text) : unexpected(text.error());
  return number ? std::optional(*number) : std::nullopt;
}

/// kernel/sched/rt.c of 6.12 leaves the throttling out, unless groups of real-time threads are
/// configured, which cgroup v2 has not.
bool has_fair_server(const fs::path& proc) {
  constexpr std::pair kSince(6, 12);
  const auto text = base::read_file(proc / "sys/kernel/osrelease");
  int major = 0, minor = 0;
  char dot = 0;
  std::istringstream release(text.value_or(""));
  release >> major >> dot >> minor;
  return !release.fail() && std::pair(major, minor) >= kSince;
}

/// -1: without limit (Documentation/scheduler/sched-rt-group.rst).
RealtimeLimits read_throttling(const fs::path& proc, const policy::CpuSet& cpus) {
  const auto runtime = read_number(proc / "sys/kernel/sched_rt_runtime_us");
  const auto period = read_number(proc / "sys/kernel/sched_rt_period_us");
  if (!runtime || !period || *runtime < 0 || *runtime >= *period) return {.nothing = cpus};
  return {.throttled = CpuShare{microseconds(*period - *runtime), microseconds(*period)}};
}

bool leaves_less(const CpuShare& one, const CpuShare& other) {
  return one.time.count() * other.period.count() < other.time.count() * one.period.count();
}

/// It is on unless somebody has switched it off there (kernel/sched/debug.c).
void add_fair_server(const fs::path& debugfs, int cpu, RealtimeLimits& limits) {
  const fs::path directory = debugfs / "sched/fair_server" / ("cpu" + std::to_string(cpu));
  const auto runtime = read_number(directory / "runtime");
  const auto period = read_number(directory / "period");
  if (!runtime || !period) return limits.unseen.add(cpu);
  if (*runtime == 0) return limits.nothing.add(cpu);
  const auto in_us = [](long long ns) {
    return std::chrono::duration_cast<microseconds>(nanoseconds(ns));
  };
  const CpuShare share{in_us(*runtime), in_us(*period)};
  if (!limits.fair_server || leaves_less(share, *limits.fair_server)) limits.fair_server = share;
}

}  // namespace

RealtimeLimits read_realtime_limits(const fs::path& proc, const fs::path& debugfs,
                                    const policy::CpuSet& cpus) {
  if (!has_fair_server(proc)) return read_throttling(proc, cpus);
  RealtimeLimits limits;
  for (const int cpu : cpus) add_fair_server(debugfs, cpu, limits);
  return limits;
}

}  // namespace ka::host
