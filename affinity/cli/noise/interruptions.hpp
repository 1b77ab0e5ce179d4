// SPDX-License-Identifier: Apache-2.0
// The ledger: who had how much of each CPU. Pure: events in, figures out.
//
// An interrupt that arrives in a task, or in another interrupt, has its own time: it is not counted
// for what it interrupted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/cli/noise/trace_event.hpp"

namespace ka::cli::noise {

/// Of one cause on one CPU.
struct Usage {
  std::string name;         ///< the last one seen
  std::uint64_t count = 0;  ///< how often it began, or was running at the start
  Nanoseconds total{}, longest{};
};

/// More causes than this are not told apart on one CPU.
inline constexpr std::size_t kMostCauses = 4096;

struct CpuUsage {
  std::map<Cause, Usage> causes;  ///< tasks too that may run there; not idle
  Usage rest;                     ///< of all causes above kMostCauses
  std::uint64_t events = 0;       ///< seen; without one, what ran there is not known
  std::uint64_t lost = 0;         ///< no room for them; with any, all figures are "at least"
  /// Switches that must have been, and were not reported: some kernels leave out those from idle.
  /// What ran since then is counted from when it was seen; all figures are "at least".
  std::uint64_t missed = 0;
};

class Interruptions {
 public:
  /// `start`: since when every event is seen.
  Interruptions(const std::set<int>& cpus, Nanoseconds start);

  /// Those of one CPU in their order. Of other CPUs, or before the start: ignored.
  void add(const TraceEvent& event);
  /// No events come after this time.
  void finish(Nanoseconds end);

  const std::map<int, CpuUsage>& cpus() const { return usage_; }

 private:
  struct Frame {
    Cause cause;
    Nanoseconds since{}, nested{};
  };
  struct Cpu {
    /// What runs: a task, and the interrupts in it. Empty: not known.
    std::vector<Frame> stack;
    std::optional<Nanoseconds> known_since;  ///< absent: events were lost
    Nanoseconds last{};                      ///< of the last event
  };

  static void record_task(Cpu& cpu, CpuUsage& usage, Nanoseconds at, int tid,
                          const std::string& name);
  void handle(Cpu& cpu, CpuUsage& usage, const TraceEvent& event, const Switch& change);
  void handle(Cpu& cpu, CpuUsage& usage, const TraceEvent& event, const Begin& begin);
  void handle(Cpu& cpu, CpuUsage& usage, const TraceEvent& event, const End& end);
  void handle(Cpu& cpu, CpuUsage& usage, const TraceEvent& event, const Lost& lost);

  Nanoseconds start_;
  std::map<int, Cpu> cpus_;
  std::map<int, CpuUsage> usage_;
};

}  // namespace ka::cli::noise
