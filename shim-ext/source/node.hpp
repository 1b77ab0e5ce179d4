// SPDX-License-Identifier: Apache-2.0
// The node's line as sources see it: it takes their reports, and shows them the result.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "policy/facts/topology.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/plan/domains.hpp"
#include "policy/plan/plan.hpp"

namespace ka::source {

/// The status of a source, for display and for the ledger's precedence of sources.
struct Status {
  bool up = false;
  std::string text;  ///< what it is connected to and reports, or why it is not
  /// This node does not have it: its file or its socket is not there.
  bool absent = false;
  /// Pods that it reported, by id, of which cannot be seen whether they have a VM, and why.
  std::map<std::string, std::string> unseen = {};

  bool operator==(const Status&) const = default;
};

/// A VM sandbox as the last run of the line left it. Valid until the node is next called.
struct SandboxState {
  const policy::ledger::PodRecord& pod;
  const policy::plan::SandboxPlan& plan;
  std::string cgroup;           ///< directory of its cpuset cgroup; may be empty
  std::string pod_uid;          ///< of the pod that kubelet made that cgroup for; may be empty
  bool cgroup_managed = false;  ///< its cpuset is ours to write, and is written
  bool observed = false;        ///< planned, but nothing is written
  bool released = false;        ///< released: watched, not placed
  bool placed = false;          ///< it has threads, and each is where the plan wants it
  std::set<int> processes;      ///< with threads in it
  bool moves_memory = false;    ///< its memory follows its plan
  std::optional<policy::plan::MemoryPlace> memory;  ///< absent until it was read
};

class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  /// Takes reports of what is already so: they cannot be refused. However many there are, the line
  /// runs once.
  virtual void handle(const std::vector<policy::ledger::Event>& events) = 0;

  /// The first half of handle(), for a source whose client waits: takes threads off CPUs that they
  /// must leave, as far as `deadline` allows. What lets threads onto more CPUs waits for finish().
  virtual void narrow(const std::vector<policy::ledger::Event>& events,
                      const base::Deadline& deadline) = 0;

  /// The second half: whatever narrow() left, and the line for `sandbox` (may be empty).
  virtual void finish(std::string_view sandbox) = 0;

  /// Reads one sandbox again, and runs the line for it. Nothing for one that is not known.
  virtual void observe(std::string_view sandbox) = 0;

  /// A source has reported everything: the start no longer waits for it. What may be widened
  /// because of that waits for finish().
  virtual void synced(policy::ledger::Source source) = 0;

  virtual void set_status(policy::ledger::Source source, Status status) = 0;
  /// Why what a source reads is read only at each drift check, or when another source makes it
  /// catch up; absent: it is notified of changes.
  virtual void set_late(policy::ledger::Source source, const std::optional<base::Error>& why) = 0;

  /// A client that waited has its answer, after `elapsed`.
  virtual void count_answer(std::chrono::nanoseconds elapsed) = 0;
  /// A shim was narrowed before its VMM existed, at this age.
  virtual void count_narrowed_shim(const std::string& sandbox, std::chrono::nanoseconds age) = 0;

  virtual const policy::ledger::Ledger& ledger() const = 0;
  virtual const policy::Topology& topology() const = 0;
  /// False after a start, until the sources that are awaited have reported.
  virtual bool may_widen() const = 0;
  /// Ids of VM sandboxes, ascending.
  virtual std::vector<std::string> sandbox_ids() const = 0;
  virtual std::optional<SandboxState> sandbox(std::string_view id) const = 0;
};

}  // namespace ka::source
