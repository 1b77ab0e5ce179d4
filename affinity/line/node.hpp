// SPDX-License-Identifier: Apache-2.0
// The node that the line works on: the machine, the settings, the sandboxes as last observed, and
// what the parts of the line share. Readers get it const.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/host/affinity_calls.hpp"
#include "affinity/host/cgroup.hpp"
#include "affinity/host/cpuset_writer.hpp"
#include "affinity/line/sandboxes.hpp"
#include "affinity/line/unsettled.hpp"
#include "affinity/line/views.hpp"
#include "affinity/registry/registry.hpp"
#include "base/clock.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "policy/facts/topology.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/plan/quiet.hpp"
#include "policy/plan/resource_classes.hpp"
#include "policy/plan/settings.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::line {

struct ProbeContext;

/// What a state file has of a pod whose VMM cannot be examined since the start: it may be none.
struct Unproved {
  state::Saved saved;
  std::string reason;

  /// The state with the containers and pins that the pod has now.
  state::Saved updated(const policy::ledger::PodRecord& pod) const;
};

/// Node-wide settings.
struct Options {
  bool enable = true;    ///< false: every thread is released
  bool observe = false;  ///< plan and report, write nothing
  policy::plan::QuietRules quiet = {};
  policy::plan::Settings settings;
  /// Per runtime handler, in place of `settings`.
  std::map<std::string, policy::plan::Settings, std::less<>> by_handler;
  policy::plan::ResourceClasses classes;
};

/// What affinities and cpusets are written with.
struct Syscalls {
  host::AffinityCalls& affinity;
  host::CpusetWriter& cpusets;
};

class Node {
 public:
  /// All references must outlive it.
  Node(policy::Topology topology, Options options, vmm::Roots roots, Syscalls syscalls,
       registry::Registry& registry, board::Board& board, const base::Clock& clock);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() = default;

  const policy::ledger::Ledger& ledger() const { return registry.ledger(); }
  const policy::ledger::StartGate& gate() const { return registry.gate(); }
  /// Ids of VM sandboxes, ascending.
  std::vector<std::string> sandbox_ids() const;
  /// Absent: no such VM sandbox.
  std::optional<SandboxView> view(std::string_view sandbox) const;

  /// Pods without a VM that have CPUs of their own, by id: those whose grade is quiet, or which
  /// request one that they do not get.
  std::vector<PlainPodView> graded_pods() const;
  /// A pod without a VM that has CPUs of its own for which something is done: its grade is quiet,
  /// or it requests tuning of them. Null: it is none.
  const policy::ledger::PodRecord* find_treated_pod(std::string_view id) const;

  /// Pods that may be VM sandboxes, which their state file or a source has and cannot show: each
  /// once, however many have it.
  Ids unseen_pods() const;

  const policy::ledger::PodRecord& pod_of(const Sandbox& sandbox) const;
  const policy::plan::Settings& settings_for(const policy::ledger::PodRecord& pod) const;
  /// A pod of any runtime has grade quiet, or may have it.
  bool has_grades() const;
  /// By its annotation, its namespace, its handler or the node.
  policy::plan::PodGrade grade_for(const policy::ledger::PodRecord& pod) const;
  /// CPUs that the sandbox must not use: containers of other pods own them.
  policy::CpuSet foreign_to(const Sandbox& sandbox) const;
  /// Its threads get the masks they would have without us.
  bool is_given_back(const Sandbox& sandbox) const;
  /// The same of a pod without a VM: the host may use its CPUs.
  bool is_given_back(const policy::ledger::PodRecord& pod) const;
  /// What makes threads be placed that are off their plan, or given back.
  policy::plan::Remedy placing_remedy() const;
  ProbeContext probe(base::ThreadStats& stats) const;
  /// Finds the cgroups, where they could not be read before.
  void refresh_cgroups();

  policy::Topology topology;
  Options options;
  const vmm::Roots roots;
  const base::ProcFs proc;
  std::optional<host::Cgroups> cgroups;  ///< absent where there are no cpuset cgroups, or unread
  /// Why it is not known whether there are any, and where.
  std::optional<base::Error> cgroups_unread;
  host::AffinityCalls& calls;
  host::CpusetWriter& cpusets;
  registry::Registry& registry;
  board::Board& board;
  const base::Clock& clock;
  Sandboxes sandboxes;
  UnsettledWrites unsettled;
  UnsettledNices unsettled_nices;
  /// By pod. They own their CPUs, and nothing of them is placed.
  std::map<std::string, Unproved> unproved;
  Ids released_pods;                  ///< pods without a VM that an operator released
  std::optional<board::Cause> cause;  ///< while events are handled

 private:
  std::optional<SandboxGrade> known_grade(const policy::ledger::PodRecord& pod) const;
  std::string why_not_realtime(const policy::ledger::PodRecord& pod) const;
  bool has_no_vm(const policy::ledger::PodRecord& pod) const;
  std::optional<state::Saved> describe(const std::string& pod) const;
};

}  // namespace ka::line
