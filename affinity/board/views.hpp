// SPDX-License-Identifier: Apache-2.0
// The board's views of sources, guests, memory and grades.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "policy/facts/guest.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/memory.hpp"
#include "policy/facts/quiet.hpp"
#include "policy/plan/guest_numbers.hpp"
#include "policy/plan/memory.hpp"
#include "policy/plan/quiet.hpp"

namespace ka::board {

/// The status of a source of events.
struct SourceView {
  bool up = false;
  std::string text;  ///< what it is and what it reports, or why it is down
  /// It is down because this node does not have it: nothing is missed.
  bool absent = false;
  /// Pods that it reported, by id, of which cannot be seen whether they have a VM, and why.
  std::map<std::string, std::string> unseen = {};

  bool operator==(const SourceView&) const = default;
};

/// The status of a sandbox's guest: the last request to its agent, and its last report.
struct GuestView {
  std::string address;
  bool connected = false;
  std::string text;  ///< which program answers there, or why none does
  policy::GuestSpec spec;
  /// Absent until it reported something. It may be older than the spec.
  std::optional<policy::GuestReport> report;
  bool current = false;  ///< the report answers the last request
  policy::GuestWrites writes;
  /// By container, of those that the plan keeps apart inside the guest: why it is not confirmed
  /// that they are where it wants them. One that is not in it is confirmed, as far as a guest can.
  std::map<std::string, policy::GuestDoubt> doubts;
  policy::plan::PlugHistory plugged;
  /// Of the last spec that was answered: from the plan to the report. 0: none was.
  std::chrono::nanoseconds reaction{};

  bool operator==(const GuestView&) const = default;
};

/// Where a VM's memory lay when it was last read.
struct MemoryView {
  policy::MemoryFacts facts;
  policy::plan::MemoryPlan plan;
  bool moving = false;       ///< on its way: `facts` are from before, `moved` is how far it is
  std::uint64_t moved = 0;   ///< bytes, of this time
  std::uint64_t failed = 0;  ///< bytes that the kernel would not move
  std::string problem;       ///< why it cannot be read or moved; empty if it can
};

/// grade = "quiet" on this node.
struct QuietView {
  policy::CpuSet wanted;  ///< what kata-affinity-helper is asked to keep the host off
  /// Its last answer. Absent: there is none yet, or it does not answer now.
  std::optional<policy::QuietState> state;
  std::string trouble;  ///< why it does not answer; empty: it does, or has not been asked yet
  /// By id, of each pod whose grade is quiet: why it is best-effort; absent: it is quiet.
  std::map<std::string, std::optional<policy::plan::QuietObstacle>, std::less<>> sandboxes;
};

}  // namespace ka::board
