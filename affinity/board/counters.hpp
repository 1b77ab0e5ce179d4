// SPDX-License-Identifier: Apache-2.0
// Counters since the start of the daemon; the API turns them into metrics.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

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

struct Counters {
  std::map<std::string, std::uint64_t> events;  ///< by source
  std::uint64_t runs = 0;
  std::uint64_t writes = 0;
  std::uint64_t cgroup_writes = 0;
  std::uint64_t drift_found = 0;
  std::uint64_t drift_repaired = 0;
  std::uint64_t threads_gone = 0;
  std::uint64_t interrupt_writes = 0;
  std::uint64_t interrupt_drift_found = 0;
  std::uint64_t memory_moved = 0;   ///< bytes
  std::uint64_t memory_failed = 0;  ///< bytes that were to move and did not
  /// By kind: those of Outcome::Errors, and state files that cannot be written.
  std::map<std::string, std::uint64_t> errors{
      {"permission", 0}, {"transient", 0}, {"other", 0}, {"unreadable", 0}, {"state", 0}};
  std::uint64_t late = 0;  ///< sandboxes that were narrowed only after the answer
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

}  // namespace ka::board
