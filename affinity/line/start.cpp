// SPDX-License-Identifier: Apache-2.0
// The start of a daemon: restores state files, and decides when threads may get more CPUs
// than they have (policy/ledger/start_gate.hpp).
#include "affinity/line/line.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/messages/events.hpp"
#include "vmm/threads.hpp"

namespace ka::line {

using board::NotificationKind;
using policy::ledger::Source;

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
  if (node_.registry.restore_ended(saved)) return;
  const auto is_adoptable = this->is_adoptable(saved.pod);
  if (!is_adoptable) return hold_back(saved, is_adoptable.error());
  const std::string& id = saved.pod.id;
  const bool was_held_back = node_.unproved.erase(id) > 0;
  if (!*is_adoptable) {
    if (was_held_back) forget(id);
    // A source may have reported another VMM of a pod that was held back.
    return node_.sandboxes.find(id) == nullptr ? node_.registry.drop(saved.pod) : void();
  }
  unfinished_.insert(id);
  if (!saved.pod.vmm && saved.released) node_.released_pods.insert(id);
  if (!node_.registry.restore(saved) || !saved.pod.vmm) return;
  node_.sandboxes.restore(saved);
  node_.board.notify(NotificationKind::kSandboxAdopted, id, "known from the previous daemon");
}

/// The process of a VMM is the one that it was, and is a VMM (or the shim that stands for one that
/// is to come) by the same proof as when it was found. An error: neither can be seen.
base::Result<bool> Line::is_adoptable(const policy::ledger::PodRecord& pod) const {
  if (!pod.vmm) return true;
  const bool by_person = pod.source == Source::kApi;
  const auto now = vmm::examine(node_.roots, pod.vmm->pid,
                                by_person ? vmm::Word::kOperator : vmm::Word::kRuntime);
  const bool is_there = node_.calls.exists(pod.vmm->pid, pod.vmm->pid);
  if (!now && (!is_gone(now) || is_there)) return unexpected(now.error());
  const bool is_same = now && now->id == *pod.vmm;
  if (is_same && (now->is_vmm || vmm::is_shim_of(node_.roots, *pod.vmm, pod.id))) return true;
  node_.board.notify(NotificationKind::kSandboxEnded, pod.id,
                     is_same ? "process " + std::to_string(pod.vmm->pid) + " is not a VMM"
                             : "VMM exited while the daemon was down");
  return false;
}

/// The pod stays known and keeps its CPUs. Its process may be any: nothing is written to it.
void Line::hold_back(const state::Saved& saved, const base::Error& why) {
  const std::string& id = saved.pod.id;
  const auto known = node_.unproved.find(id);
  if (known == node_.unproved.end()) node_.registry.restore_without_vmm(saved.pod);
  const bool is_news = known == node_.unproved.end() || known->second.reason != why.message;
  node_.unproved.insert_or_assign(id, Unproved{saved, why.message});
  if (!is_news) return;
  node_.board.notify(NotificationKind::kUnseen, id,
                     "not placed, retrying: process " + std::to_string(saved.pod.vmm->pid) +
                         ", its VMM before the start, cannot be examined: " + why.message,
                     why.message);
}

/// A pod that was held back, unless a source has reported its VM meanwhile.
void Line::forget(const std::string& id) {
  if (node_.sandboxes.find(id) == nullptr) handle({Source::kState, policy::ledger::PodGone{id}});
}

void Line::retry_unproved() {
  for (const auto& [id, held] : std::map(node_.unproved)) retry_unproved(id);
}

/// What a source has reported of the pod meanwhile counts: another VMM, containers, pins.
void Line::retry_unproved(const std::string& id) {
  const auto held = node_.unproved.find(id);
  if (held == node_.unproved.end()) return;
  const policy::ledger::PodRecord* pod = node_.registry.find(id);
  const bool is_another = pod == nullptr || (pod->vmm && pod->vmm != held->second.saved.pod.vmm);
  if (is_another) {
    node_.unproved.erase(held);
  } else {
    adopt_one(held->second.updated(*pod));
  }
}

Outcome Line::stop_waiting() { return node_.registry.stop_waiting() ? finish({}) : Outcome{}; }

}  // namespace ka::line
