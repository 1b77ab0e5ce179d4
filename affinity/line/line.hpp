// SPDX-License-Identifier: Apache-2.0
// The one line: event -> ledger -> snapshot -> plan -> diff -> apply -> re-read. Every trigger (an
// event, a timer, a restart, an operator) runs it; there is no second path to the kernel.
//
// The line is synchronous and single-threaded: a call returns when the kernel has been written and
// read again. What blocks or waits (monitors, sockets, timers) lives outside and calls in.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/board/outcome.hpp"
#include "affinity/line/node.hpp"
#include "affinity/line/pass.hpp"
#include "base/result.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/facts/topology.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::line {

class Line {
 public:
  /// `node` must outlive it.
  explicit Line(Node& node);
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() = default;

  /// Read-only access.
  const Node& node() const { return node_; }

  /// A source that this node has: nothing is widened until it has reported. Before adopt().
  void expect(policy::ledger::Source source) { node_.registry.expect(source); }
  /// Takes back what the state files have, then runs for the whole node.
  Outcome adopt();
  /// A source has reported all that it has (kubelet does so with each event). What may be widened
  /// by that waits for finish().
  void source_synced(policy::ledger::Source source) { node_.registry.source_synced(source); }
  /// The sources that have not reported are not waited for any longer; runs where that allows more.
  Outcome stop_waiting();

  /// Handles what a source reports: it is so already and cannot be refused. However many events
  /// there are, the line runs once.
  Outcome handle(const std::vector<policy::ledger::Event>& events);
  Outcome handle(const policy::ledger::Event& event) { return handle(std::vector{event}); }

  /// The first half of handle(), for a source that waits: folds the events, and takes threads off
  /// CPUs that they must leave, as far as `budget` allows. The state files, and what lets threads
  /// onto more CPUs, wait for finish(). A sandbox is observed only when its plan, made from what
  /// was last observed, takes something away.
  Outcome narrow(const std::vector<policy::ledger::Event>& events, std::chrono::nanoseconds budget);

  /// The second half: runs for what narrow() left, and for `sandbox` (may be empty), since what
  /// was reported of it has been done by now (Kata plugs vCPUs and writes cgroups meanwhile). The
  /// drift check does it too, for events that are never finished.
  Outcome finish(std::string_view sandbox);

  /// What a monitor (QMP) reported of a sandbox's vCPUs and iothreads; runs for it.
  Outcome set_monitor_facts(std::string_view sandbox, vmm::MonitorFacts facts);

  /// The VMM of a sandbox has ended, by its pidfd: final, whatever has its number now. Nothing
  /// where the sandbox has another VMM by now.
  Outcome vmm_ended(std::string_view sandbox, const policy::ProcessId& vmm);

  /// Runs for one sandbox because something may have followed an event (Kata plugs vCPUs after it
  /// updates a container) or its VMM may be gone. Nothing for one that is not known; what narrow()
  /// left to finish() stays left.
  Outcome refresh(std::string_view sandbox);

  /// Another program wrote the cgroup in `directory`: runs for the sandboxes in it.
  Outcome cgroup_written(const std::string& directory);

  /// The drift check: reads what may have changed without an event, and runs for the sandboxes
  /// where something did. Cheap when nothing did.
  Outcome check_drift();

  /// By an operator: places a released sandbox again, and threads that were given up. For all,
  /// state of before the start that cannot be read is not waited for any longer.
  Outcome reconcile(Sandbox& sandbox);
  Outcome reconcile_all();
  /// Gives the threads of a sandbox (or of all) the mask they would have without us, until the next
  /// reconcile().
  Outcome release(Sandbox& sandbox);
  Outcome release_all();

  /// The same of a pod without a VM, of which nothing is placed: the host's grade on its CPUs.
  Outcome reconcile_pod(const std::string& id);
  Outcome release_pod(const std::string& id);

  /// New settings (a reload): plans everything again.
  Outcome configure(Options options);
  /// The machine changed (CPU hot-plug): plans everything again.
  Outcome change_topology(policy::Topology topology);

 private:
  /// What a number of events changed.
  struct Changes {
    Ids pods;      ///< those concerned; "" is the node as a whole
    Ids narrowed;  ///< of these, those that may have to leave CPUs
    bool owners = false, exclusive_map = false;
    policy::CpuSet taken;
  };

  // Running it (line.cpp).
  Outcome run(const Affected& sandboxes, Extent extent = Extent::kAll);
  void conclude(Sandbox& sandbox, Extent extent);
  void report_unplaced(const Sandbox& sandbox);
  Outcome run_and_follow_up(const Affected& sandboxes, Extent extent = Extent::kAll);
  Outcome follow_up();
  Outcome grant_claims();
  Outcome end_dead_sandboxes();
  Outcome level();
  enum class Trigger { kCheck, kCgroupWritten };
  Outcome repair(const Affected& sandboxes, Trigger trigger = Trigger::kCheck);
  int report_drift(const Affected& sandboxes, Trigger trigger);
  void add_or_remove_sandbox(const std::string& pod);
  void reclaim(Sandbox& sandbox);
  void set_pod_released(const std::string& id, bool released);

  // Events (events.cpp).
  Changes fold(const std::vector<policy::ledger::Event>& events);
  policy::ledger::Change fold(const policy::ledger::Event& event);
  void hand_over_vm(const policy::ledger::Change& change);
  void record_trespasses(const policy::CpuSet& taken);
  Affected affected_by(const Changes& changes) const;
  Ids holders_of_vmms(const Ids& pods) const;
  Outcome narrow_by(const Changes& changes, std::chrono::nanoseconds budget);
  Affected pressed_by(const Changes& changes) const;
  void save_plain_pods(const Ids& pods) const;

  // The start (start.cpp).
  void adopt_one(const state::Saved& saved);
  base::Result<bool> is_adoptable(const policy::ledger::PodRecord& pod) const;
  void hold_back(const state::Saved& saved, const base::Error& why);
  void forget(const std::string& id);
  void retry_unproved();
  void retry_unproved(const std::string& id);

  Node& node_;
  board::Subscription guests_;
  Ids unfinished_;            ///< pods for which finish() has work
  bool map_changed_ = false;  ///< and must check whose plans the new map of owners changes
  Ids dead_;                  ///< sandboxes whose VMM was found gone, to be ended
  Ids unplaced_;              ///< sandboxes with threads that could not be placed, as notified
};

}  // namespace ka::line
