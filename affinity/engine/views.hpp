// SPDX-License-Identifier: Apache-2.0
// What the engine shows to the API: read-only pictures of its state. Pointers and references are
// valid until the engine is next called.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "affinity/engine/event_kind.hpp"
#include "policy/facts/guest.hpp"
#include "policy/facts/interrupts.hpp"
#include "policy/facts/memory.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/plan/guest_numbers.hpp"
#include "policy/plan/isolation.hpp"
#include "policy/plan/memory.hpp"
#include "policy/plan/plan.hpp"

namespace ka::engine {

/// One thread as it was last seen.
struct ThreadView {
  policy::ThreadFacts facts;
  policy::CpuSet wanted;  ///< what the plan gives it; empty: left where it is
  policy::CpuSet actual;  ///< what the kernel said when it was last read
  /// False when the kernel refused for good (EPERM) or the plan leaves the thread alone.
  bool managed = true;
  /// False when it could not be read in the last look: `actual` is from before, and it is not
  /// written to.
  bool seen = true;
  std::string problem;  ///< why it is not as wanted, in words; empty when all is well

  bool drifted() const { return seen && managed && !wanted.empty() && wanted != actual; }
};

/// One interrupt of a passed-through device as it was last seen.
struct InterruptView {
  policy::InterruptFacts facts;
  policy::CpuSet wanted;  ///< where the plan sends it; empty: left where it is
  /// False when the kernel refused for good, others share it, or the plan leaves it alone.
  bool managed = false;
  std::string problem;  ///< why it does not go as wanted, in words; empty when all is well

  bool drifted() const { return managed && wanted != facts.cpus; }
  /// "interrupt 24 (vfio-msix[0](0000:01:00.0))", for people.
  std::string name() const {
    return "interrupt " + std::to_string(facts.number) + " (" + facts.name + ')';
  }
};

/// How a sandbox's guest stands: what was asked of its agent, and what that told last.
struct GuestView {
  std::string address;
  bool connected = false;
  std::string text;  ///< who answers there, or why nobody does
  policy::GuestWishes wishes;
  /// Absent until it told something. It may be older than the wishes.
  std::optional<policy::GuestReport> report;
  bool current = false;  ///< the report is what came of the wishes
  policy::GuestTold told;
  /// By container, of those that the plan keeps apart inside the guest: why it is not confirmed
  /// that they are where it wants them. One that is not in it is confirmed, as far as a guest can.
  std::map<std::string, policy::GuestDoubt> doubts;
  policy::plan::PlugHistory plugged;
  /// Of the last wishes that were answered: from the plan to the report. 0: none were.
  std::chrono::nanoseconds reaction{};

  bool operator==(const GuestView&) const = default;
};

/// Where a VM's memory lay when it was last looked at.
struct MemoryView {
  policy::MemoryFacts facts;
  policy::plan::MemoryPlan plan;
  bool moving = false;       ///< on its way: `facts` are from before, `moved` is how far it is
  std::uint64_t moved = 0;   ///< bytes, of this time
  std::uint64_t failed = 0;  ///< bytes that the kernel would not move
  std::string problem;       ///< why it cannot be read or moved, in words; empty when it can
};

struct SandboxView {
  const policy::ledger::PodRecord& pod;
  const policy::plan::SandboxPlan& plan;
  const std::vector<ThreadView>& threads;
  const std::vector<policy::VcpuFacts>& vcpus;
  const policy::plan::Settings& settings;
  std::string vcpu_source;                      ///< which backend named the vCPUs
  const std::vector<std::string>& conflicts;    ///< where backends contradicted each other
  std::string cgroup;                           ///< directory of its cpuset cgroup; may be empty
  std::optional<policy::CpuSet> cgroup_cpus;    ///< what that cgroup allows
  bool cgroup_managed = false;                  ///< cgroup = "manage", and nothing is in its way
  std::optional<policy::CpuSet> cgroup_theirs;  ///< what others wrote there, under what we wrote
  std::string cgroup_problem;  ///< why it is not managed although it is to be, in words
  const std::string& trouble;  ///< what cannot be read of it now; empty: it is seen
  bool released = false;       ///< given back (`release`, `enable = false`): watched, not placed
  bool observed = false;       ///< mode = "observe": planned, nothing is written
  const GuestView* guest = nullptr;                 ///< null: no agent is known
  const MemoryView* memory = nullptr;               ///< null until it was looked at
  const std::vector<policy::DeviceFacts>& devices;  ///< passed through
  const std::vector<InterruptView>& interrupts;     ///< of these
  /// Of each exclusive container that has not exited, by id.
  const std::vector<policy::plan::ContainerIsolation>& isolation;
  std::int64_t now = 0;  ///< seconds of the monotonic clock, as pins end by it

  bool moves_memory() const { return settings.move_memory && !released && !observed; }
};

/// Something that happened, for `events`, in the order it happened.
struct Happening {
  std::uint64_t sequence = 0;
  std::chrono::system_clock::time_point time;
  EventKind kind = EventKind::kConfigured;
  std::string sandbox;    ///< may be empty
  std::string container;  ///< may be empty
  std::string reason;     ///< who told of it, or why it went wrong; may be empty
  std::string text;       ///< one sentence
};

/// Result of one run of the line.
struct Outcome {
  int planned = 0;     ///< sandboxes planned
  int writes = 0;      ///< affinity system calls made
  int failed = 0;      ///< threads that could not be placed
  int late = 0;        ///< sandboxes for which narrow() had no time left
  int interrupts = 0;  ///< interrupts of passed-through devices that were sent elsewhere
  std::chrono::nanoseconds duration{};

  Outcome& operator+=(const Outcome& other) {
    planned += other.planned;
    writes += other.writes;
    failed += other.failed;
    late += other.late;
    interrupts += other.interrupts;
    duration += other.duration;
    return *this;
  }
};

/// How a source of events stands.
struct SourceView {
  bool up = false;
  std::string text;  ///< who it is and how far it sees, or why it is not heard

  bool operator==(const SourceView&) const = default;
};

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

/// Counters since the start; the API turns them into metrics.
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
  /// By kind: writes that the kernel refuses for good, or for now, or with an errno that nobody
  /// expects; sandboxes that cannot be read; state files that cannot be written.
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
};

}  // namespace ka::engine
