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
RealtimeLimits read_throttling(const fs::path& proc) {
  const auto runtime = read_number(proc / "sys/kernel/sched_rt_runtime_us");
  const auto period = read_number(proc / "sys/kernel/sched_rt_period_us");
  if (!runtime || !period || *runtime < 0 || *runtime >= *period) {
    return {.throttled = {}, .fair_server = {}, .leaves_nothing = true};
  }
  const CpuShare share{microseconds(*period - *runtime), microseconds(*period)};
  return {.throttled = share, .fair_server = {}, .leaves_nothing = false};
}

}  // namespace

/// It is on unless somebody has switched it off there (kernel/sched/debug.c).
RealtimeLimits read_realtime_limits(const fs::path& proc, const fs::path& debugfs, int cpu) {
  if (!has_fair_server(proc)) return read_throttling(proc);
  const fs::path directory = debugfs / "sched/fair_server" / ("cpu" + std::to_string(cpu));
  const auto runtime = read_number(directory / "runtime");
  const auto period = read_number(directory / "period");
  if (!runtime || !period) return {};
  if (*runtime == 0) return {.throttled = {}, .fair_server = {}, .leaves_nothing = true};
  const auto in_us = [](long long ns) {
    return std::chrono::duration_cast<microseconds>(nanoseconds(ns));
  };
  const CpuShare share{in_us(*runtime), in_us(*period)};
  return {.throttled = {}, .fair_server = share, .leaves_nothing = false};
}

}  // namespace ka::host
