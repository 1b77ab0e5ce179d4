// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/line.hpp"

#include <algorithm>
#include <utility>

#include "affinity/host/passed_through.hpp"
#include "affinity/line/drift.hpp"
#include "affinity/line/planning.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::line {
namespace {

using board::NotificationKind;

constexpr int kMaxLevels = 3;  ///< floating vCPUs are spread again this often after a change

/// libvirt decides the masks of a domain's threads from then on: its record may differ from
/// thread to thread, and it also opens the cgroups that stood in the way.
bool may_be_left_alone(const Node& node, const Sandbox& sandbox) {
  if (!node.is_given_back(sandbox)) return false;
  const bool is_domain = !node.pod_of(sandbox).domain.empty();
  return sandbox.left_alone() || is_domain || sandbox.has_originals();
}

}  // namespace

Line::Line(Node& node) : node_(node) {
  guests_ = node.board.feed().subscribe(
      NotificationKind::kGuestChanged, [this](const board::Notification& changed) {
        if (node_.board.guest(changed.sandbox) == nullptr) return;
        if (Sandbox* sandbox = node_.sandboxes.find(changed.sandbox)) {
          update_isolation(node_, *sandbox);
        }
      });
}

// --- running it

Outcome Line::run(const Affected& sandboxes, Extent extent) {
  const auto start = node_.clock.now();
  Pass pass(node_, extent);
  pass.run(sandboxes);
  dead_.insert(pass.ended().begin(), pass.ended().end());
  for (const Sandbox* sandbox : sandboxes) record_trespass(node_, *sandbox);
  for (Sandbox* sandbox : sandboxes) conclude(*sandbox, pass.extent());
  Outcome outcome = pass.outcome();
  outcome.runs = 1;
  outcome.duration = node_.clock.now() - start;
  node_.board.counters().record(outcome);
  node_.board.notify(NotificationKind::kLineRun, {}, {});
  return outcome;
}

/// What is remembered, saved and notified of a sandbox after a run.
void Line::conclude(Sandbox& sandbox, Extent extent) {
  const std::string& id = sandbox.id();
  const bool is_dead = dead_.contains(id);
  sandbox.remember();
  if (extent == Extent::kAll) {
    if (!is_dead) update_isolation(node_, sandbox);
    report_unplaced(sandbox);
    unfinished_.erase(id);
    sandbox.set_left_alone(may_be_left_alone(node_, sandbox));
  }
  if (!is_dead) node_.registry.save(id);
  node_.board.notify(NotificationKind::kSandboxPlanned, id, {});
}

/// Once when it begins and once when it ends: the next runs try again.
void Line::report_unplaced(const Sandbox& sandbox) {
  const std::string& id = sandbox.id();
  const auto is_unplaced = [](const ThreadView& thread) {
    return thread.drifted() && !thread.problem.empty();
  };
  const auto count = std::ranges::count_if(sandbox.threads(), is_unplaced);
  if (count == 0) {
    if (unplaced_.erase(id) == 0) return;
    node_.board.notify(NotificationKind::kPlaced, id,
                       "all threads are on their planned CPUs again");
  } else if (unplaced_.insert(id).second) {
    const std::string& reason = std::ranges::find_if(sandbox.threads(), is_unplaced)->problem;
    node_.board.notify(
        NotificationKind::kUnplaced, id,
        messages::counted(count, "thread") + " cannot be placed yet, retrying: " + reason, reason);
  }
}

Outcome Line::run_and_follow_up(const Affected& sandboxes, Extent extent) {
  Outcome outcome = run(sandboxes, extent);
  outcome += follow_up();
  return outcome;
}

/// Follow-up of a run for the sandboxes that were not in it.
Outcome Line::follow_up() {
  Outcome outcome = end_dead_sandboxes();
  outcome += level();
  outcome += grant_claims();
  return outcome;
}

/// Two pods were reported with one VM, and the one that had it has gone.
Outcome Line::grant_claims() {
  const auto due = node_.registry.remove_due_claims();
  return due.empty() ? Outcome{} : handle(due);
}

/// A VMM that exited ends its sandbox; the CPUs that it owned may make room for others.
Outcome Line::end_dead_sandboxes() {
  Outcome outcome;
  while (!dead_.empty()) {
    bool map_changed = false;
    for (const std::string& id : std::exchange(dead_, {})) {
      map_changed |= node_.registry.end(id).exclusive_map;
      add_or_remove_sandbox(id);
    }
    if (map_changed) outcome += run(changed_by_map(node_, {}, unfinished_));
  }
  return outcome;
}

/// What waits for its second half is left to that.
Outcome Line::level() {
  Outcome outcome;
  bool moved = may_level(node_.options);
  for (int i = 0; i < kMaxLevels && moved; ++i) {
    moved = false;
    for (Sandbox* sandbox : node_.sandboxes.all()) {
      if (map_changed_ || unfinished_.contains(sandbox->id())) continue;
      if (!should_level(node_, *sandbox)) continue;
      outcome += run({sandbox});
      moved = true;
    }
  }
  return outcome;
}

/// Makes or drops the sandbox of a pod's record. One that is still held back has none: it would
/// know neither that it is released nor what its threads had.
void Line::add_or_remove_sandbox(const std::string& pod) {
  if (const policy::ledger::PodRecord* record = node_.registry.find(pod)) {
    node_.sandboxes.add(*record);
    if (record->vmm) retry_unproved(pod);
    if (node_.unproved.contains(pod)) node_.sandboxes.remove(pod);
  } else {
    node_.sandboxes.remove(pod);
    node_.released_pods.erase(pod);
    node_.unproved.erase(pod);
    unplaced_.erase(pod);
  }
}

// --- other triggers

Outcome Line::set_monitor_facts(std::string_view sandbox, vmm::MonitorFacts facts) {
  Sandbox* found = node_.sandboxes.find(sandbox);
  if (found == nullptr) return {};
  found->set_monitor(std::move(facts));
  return run_and_follow_up({found});
}

Outcome Line::vmm_ended(std::string_view sandbox, const policy::ProcessId& vmm) {
  const policy::ledger::PodRecord* pod = node_.registry.find(sandbox);
  if (pod == nullptr || pod->vmm != vmm || node_.sandboxes.find(sandbox) == nullptr) return {};
  dead_.insert(pod->id);
  return follow_up();
}

Outcome Line::refresh(std::string_view sandbox) {
  Sandbox* found = node_.sandboxes.find(sandbox);
  if (found == nullptr) return {};
  if (map_changed_ || unfinished_.contains(sandbox)) {
    // It has a new plan now, and finish() would take it for one that is in force.
    unfinished_.emplace(sandbox);
    return run_and_follow_up({found}, Extent::kNarrow);
  }
  return repair({found});
}

Outcome Line::cgroup_written(const std::string& directory) {
  Affected inside;
  for (Sandbox* sandbox : node_.sandboxes.all()) {
    if (sandbox->cgroup() == directory) inside.push_back(sandbox);
  }
  return repair(inside, Trigger::kCgroupWritten);
}

Outcome Line::check_drift() {
  node_.registry.retry([this](const state::Saved& saved) { adopt_one(saved); });
  retry_unproved();
  node_.refresh_cgroups();
  Affected drifted;
  base::ThreadStats stats(node_.proc.root());
  check_unsettled(node_, stats);
  const ProbeContext context = node_.probe(stats);
  const bool has_vfio = host::has_vfio(node_.roots.sys).value_or(true);
  for (Sandbox* sandbox : node_.sandboxes.all()) {
    sandbox->keeper().retry_due(node_.clock.now());
    const bool is_returned = !node_.is_given_back(*sandbox) || sandbox->left_alone();
    const bool is_placed = is_returned && !unplaced_.contains(sandbox->id());
    const bool is_as_left = sandbox->is_unchanged(context, has_vfio, node_.clock.now());
    if (!is_placed || !is_as_left) drifted.push_back(sandbox);
  }
  Outcome outcome = repair(drifted);
  outcome += grant_claims();
  if (map_changed_ || node_.registry.has_opened() || !unfinished_.empty()) outcome += finish({});
  return outcome;
}

/// Runs for sandboxes in which something changed that no event reported, and counts the threads
/// whose mask another program had changed.
Outcome Line::repair(const Affected& sandboxes, Trigger trigger) {
  if (sandboxes.empty()) return {};
  const int found = report_drift(sandboxes, trigger);
  Outcome outcome = run_and_follow_up(sandboxes);
  node_.board.counters().record_drift(found, outcome.failed);
  return outcome;
}

/// The number of threads.
int Line::report_drift(const Affected& sandboxes, Trigger trigger) {
  int threads = 0;
  for (const Sandbox* sandbox : sandboxes) {
    const int moved = sandbox->interrupts().count_changed(node_.roots, sandbox->seen().vmm_pid);
    if (moved > 0) {
      node_.board.counters().interrupt_drift_found += static_cast<std::uint64_t>(moved);
      node_.board.notify(NotificationKind::kDrift, sandbox->id(),
                         interrupt_drift_text(node_, moved), "interrupt");
    }
    if (const int values = sandbox->classes().count_changed(node_.calls); values > 0) {
      node_.board.notify(NotificationKind::kDrift, sandbox->id(), class_drift_text(values),
                         "resource-class");
    }
    if (node_.is_given_back(*sandbox)) continue;
    const std::vector<ChangedMask> changed = sandbox->changed_masks(node_.calls);
    if (changed.empty()) continue;
    threads += static_cast<int>(changed.size());
    const Means means = means_of(node_, *sandbox, trigger == Trigger::kCgroupWritten);
    node_.board.notify(NotificationKind::kDrift, sandbox->id(),
                       drift_text(node_, *sandbox, changed, means), means_name(means));
  }
  return threads;
}

Outcome Line::reconcile(Sandbox& sandbox) {
  reclaim(sandbox);
  return run_and_follow_up({&sandbox});
}

/// That it is to be placed again is saved first, as what release() does is: after kill -9 in the
/// middle the next daemon would leave alone what is placed in part.
void Line::reclaim(Sandbox& sandbox) {
  const bool was_released = sandbox.released();
  sandbox.set_released(false);
  sandbox.retry_refused();
  if (!was_released) return;
  sandbox.set_left_alone(may_be_left_alone(node_, sandbox));
  node_.registry.save(sandbox.id());
}

Outcome Line::reconcile_all() {
  node_.registry.dismiss_lost_state();
  for (const std::string& id : Ids(node_.released_pods)) set_pod_released(id, false);
  for (Sandbox* sandbox : node_.sandboxes.all()) reclaim(*sandbox);
  return run_and_follow_up(node_.sandboxes.all());
}

/// That it is to be released is saved first: after kill -9 the next daemon completes it.
Outcome Line::release(Sandbox& sandbox) {
  sandbox.set_released(true);
  node_.registry.save(sandbox.id());
  node_.board.notify(NotificationKind::kReleased, sandbox.id(),
                     "threads have the masks they would have without kata-affinity");
  return run_and_follow_up({&sandbox});
}

Outcome Line::release_all() {
  for (Sandbox* sandbox : node_.sandboxes.all()) {
    sandbox->set_released(true);
    node_.registry.save(sandbox->id());
  }
  for (const auto& [id, pod] : node_.ledger().pods()) {
    if (node_.find_treated_pod(id) != nullptr) set_pod_released(id, true);
  }
  node_.board.notify(NotificationKind::kReleased, {},
                     "all threads have the masks they would have without kata-affinity");
  return run_and_follow_up(node_.sandboxes.all());
}

Outcome Line::release_pod(const std::string& id) {
  set_pod_released(id, true);
  node_.board.notify(NotificationKind::kReleased, id, "the host may use its CPUs");
  return run_and_follow_up({});
}

Outcome Line::reconcile_pod(const std::string& id) {
  set_pod_released(id, false);
  return run_and_follow_up({});
}

void Line::set_pod_released(const std::string& id, bool released) {
  if (released) {
    node_.released_pods.insert(id);
  } else {
    node_.released_pods.erase(id);
  }
  node_.registry.save(id);
}

Outcome Line::configure(Options options) {
  node_.options = std::move(options);
  node_.board.notify(NotificationKind::kConfigured, {}, "configuration loaded");
  return run_and_follow_up(node_.sandboxes.all());
}

Outcome Line::change_topology(policy::Topology topology) {
  node_.topology = std::move(topology);
  node_.board.notify(NotificationKind::kTopologyChanged, {},
                     "online CPUs: " + policy::format_list(node_.topology.online()));
  return run_and_follow_up(node_.sandboxes.all());
}

}  // namespace ka::line
