// SPDX-License-Identifier: Apache-2.0
// Counters since the start of the daemon, and in one table how the metrics page shows them: a new
// one is a member, its row, and the place that counts it (docs/develop/extending.md, "A metric").
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "affinity/board/outcome.hpp"

namespace ka::board {

/// How many durations were how long.
template <std::size_t kSize>
struct Histogram {
  std::array<double, kSize> bounds;               ///< seconds, ascending
  std::array<std::uint64_t, kSize + 1> counts{};  ///< the last one: above every bound
  double sum = 0;                                 ///< seconds

  void add(std::chrono::nanoseconds duration) {
    const double seconds = std::chrono::duration<double>(duration).count();
    const auto* bound = std::ranges::lower_bound(bounds, seconds);
    ++counts[static_cast<std::size_t>(bound - bounds.begin())];
    sum += seconds;
  }
};

using CountsByLabel = std::map<std::string, std::uint64_t>;

struct Counters {
  CountsByLabel events;  ///< by source
  std::uint64_t runs = 0;
  std::uint64_t writes = 0;
  std::uint64_t cgroup_writes = 0;
  std::uint64_t drift_found = 0;
  std::uint64_t drift_repaired = 0;
  std::uint64_t partitions_undone = 0;
  std::uint64_t threads_gone = 0;
  std::uint64_t interrupt_writes = 0;
  std::uint64_t resource_class_writes = 0;
  std::uint64_t interrupt_drift_found = 0;
  std::uint64_t memory_moved = 0;   ///< bytes
  std::uint64_t memory_failed = 0;  ///< bytes that were to move and did not
  /// By kind: those of Outcome::Errors, and state files that cannot be written.
  CountsByLabel errors{
      {"permission", 0}, {"transient", 0}, {"other", 0}, {"unreadable", 0}, {"state", 0}};
  CountsByLabel class_problems;  ///< mode = "managed": by policy::managed::problem_name()
  std::uint64_t late = 0;        ///< sandboxes that were narrowed only after the answer
  /// Runs that wrote something, by time from event to last thread read again.
  Histogram<12> reactions{
      {0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0}};
  /// Answers to a container runtime that waits, by time from its question.
  Histogram<8> answers{{0.00005, 0.0001, 0.00025, 0.001, 0.005, 0.02, 0.05, 2.0}};
  /// Guests that were asked for something else, by time from the plan to their report of it.
  Histogram<8> guest_reactions{{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.2, 1.0}};
  /// Shims that were narrowed before their VMM was there, by their age then.
  Histogram<8> narrowed_shims{{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0}};

  /// Adds what one run did. Not for a sum of outcomes that were recorded already.
  void record(const Outcome& outcome);
  /// Threads that another program had moved, and how many of them could not be moved back.
  void record_drift(int found, int failed);
};

/// How the metrics page shows a counter. Names and units follow Prometheus's conventions.
struct CounterInfo {
  const char* name;
  const char* help;
  std::variant<std::uint64_t Counters::*, CountsByLabel Counters::*, Histogram<8> Counters::*,
               Histogram<12> Counters::*>
      member;
  const char* label = nullptr;  ///< of counts by label: what they are counted by
};

/// In the order of the page.
inline constexpr CounterInfo kCounters[] = {
    {"kata_affinity_events_total", "Events received, by source.", &Counters::events, "source"},
    {"kata_affinity_runs_total", "Planning runs over one or more sandboxes.", &Counters::runs},
    {"kata_affinity_writes_total", "sched_setaffinity calls made.", &Counters::writes},
    {"kata_affinity_cgroup_writes_total", "Writes to cgroup cpusets.", &Counters::cgroup_writes},
    {"kata_affinity_drift_found_total", "Threads that another program had moved.",
     &Counters::drift_found},
    {"kata_affinity_drift_repaired_total",
     "Threads moved back after another program had moved them.", &Counters::drift_repaired},
    {"kata_affinity_partitions_undone_total",
     "Cpuset partitions that another program had undone, and that were made again.",
     &Counters::partitions_undone},
    {"kata_affinity_interrupt_writes_total",
     "Affinity changes of passed-through device interrupts.", &Counters::interrupt_writes},
    {"kata_affinity_interrupt_drift_found_total", "Interrupts that another program had moved.",
     &Counters::interrupt_drift_found},
    {"kata_affinity_resource_class_writes_total",
     "Nice values and block I/O weights written for resource classes.",
     &Counters::resource_class_writes},
    {"kata_affinity_threads_gone_total", "Threads that exited before they were placed.",
     &Counters::threads_gone},
    {"kata_affinity_errors_total", "Errors, by kind.", &Counters::errors, "kind"},
    {"kata_affinity_memory_moved_bytes_total", "Memory migrated to the NUMA nodes of its CPUs.",
     &Counters::memory_moved},
    {"kata_affinity_memory_failed_bytes_total", "Memory that the kernel could not migrate.",
     &Counters::memory_failed},
    {"kata_affinity_reaction_seconds",
     "Time from an event until the last thread was placed and read back.", &Counters::reactions},
    {"kata_affinity_answer_seconds", "Response time to the container runtime.", &Counters::answers},
    {"kata_affinity_guest_reaction_seconds",
     "Time from a changed plan until the guest confirmed it.", &Counters::guest_reactions},
    {"kata_affinity_shim_narrowed_seconds",
     "Age of a shim when it was narrowed, before its VMM started.", &Counters::narrowed_shims},
    {"kata_affinity_class_problems_total",
     "Containers that could not have the CPU class asked for, by problem.",
     &Counters::class_problems, "problem"},
    {"kata_affinity_late_total",
     "Sandboxes narrowed only after the response to the container runtime.", &Counters::late},
};

}  // namespace ka::board
