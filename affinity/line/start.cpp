// SPDX-License-Identifier: Apache-2.0
// The start of a daemon: restores state files, and decides when threads may get more CPUs
// than they have (policy/ledger/start_gate.hpp).
#include "affinity/line/line.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/messages/events.hpp"
#include "vmm/threads.hpp"

namespace ka::line {

using board::NotificationKind;

Outcome Line::adopt() {
  registry::Registry& registry = node_.registry;
  registry.load([this](const state::Saved& saved) { adopt_one(saved); });
  if (!registry.gate().may_widen()) {
    node_.board.notify(NotificationKind::kStartWaiting, {},
                       messages::waiting_text(registry.gate()));
  }
  registry.consume_opened();
  unfinished_.clear();
  return run_and_follow_up(node_.sandboxes.all());
}

void Line::adopt_one(const state::Saved& saved) {
  if (!is_adoptable(saved.pod)) return node_.registry.drop_state(saved.pod.id);
  unfinished_.insert(saved.pod.id);
  if (!saved.pod.vmm && saved.released) node_.released_pods.insert(saved.pod.id);
  if (!node_.registry.restore(saved) || !saved.pod.vmm) return;
  node_.sandboxes.restore(saved);
  node_.board.notify(NotificationKind::kSandboxAdopted, saved.pod.id,
                     "known from the previous daemon");
}

/// The process of a VMM is the one that it was, and is a VMM (or the shim that stands for one that
/// is to come) by the same proof as when it was found. What cannot be seen now is kept.
bool Line::is_adoptable(const policy::ledger::PodRecord& pod) const {
  if (!pod.vmm) return true;
  const bool by_person = pod.source == policy::ledger::Source::kApi;
  const auto now = vmm::examine(node_.roots, pod.vmm->pid,
                                by_person ? vmm::Word::kOperator : vmm::Word::kRuntime);
  const bool is_there = node_.calls.exists(pod.vmm->pid, pod.vmm->pid);
  if (!now && (!is_gone(now) || is_there)) return true;
  const bool is_same = now && now->id == *pod.vmm;
  if (is_same && (now->is_vmm || vmm::is_shim_of(node_.roots, *pod.vmm, pod.id))) return true;
  node_.board.notify(NotificationKind::kSandboxEnded, pod.id,
                     is_same ? "process " + std::to_string(pod.vmm->pid) + " is not a VMM"
                             : "VMM exited while the daemon was down");
  return false;
}

Outcome Line::stop_waiting() { return node_.registry.stop_waiting() ? finish({}) : Outcome{}; }

}  // namespace ka::line
