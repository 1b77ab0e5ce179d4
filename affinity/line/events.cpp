// SPDX-License-Identifier: Apache-2.0
// How events enter the line: folded into the ledger, and what each means for the sandboxes of the
// node. For a source that waits for an answer in two halves: what takes CPUs away at once, all else
// when the source's part is done.
#include <utility>
#include <variant>

#include "affinity/line/line.hpp"
#include "affinity/line/planning.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::line {

using policy::ledger::Change;
using policy::ledger::Event;

Outcome Line::handle(const std::vector<Event>& events) {
  const Changes changes = fold(events);
  Outcome outcome;
  if (!changes.pods.empty()) {
    save_plain_pods(changes.pods);
    outcome = run_and_follow_up(affected_by(changes));
  }
  if (node_.registry.has_opened()) outcome += finish({});
  node_.cause.reset();
  return outcome;
}

/// They come from one source, at one moment.
Line::Changes Line::fold(const std::vector<Event>& events) {
  Changes changes;
  if (events.empty()) return changes;
  node_.cause = board::Cause{std::string(policy::ledger::source_name(events.front().source)),
                             node_.clock.now()};
  for (const Event& event : events) {
    const Change change = fold(event);
    if (!change.any) continue;
    changes.pods.insert(change.sandbox);
    changes.pods.insert(change.ownership_changed.begin(), change.ownership_changed.end());
    if (!change.former_pod.empty()) changes.pods.insert(change.former_pod);
    if (!change.only_widens) changes.narrowed.insert(change.sandbox);
    changes.owners |= change.owners;
    changes.exclusive_map |= change.exclusive_map;
    changes.taken |= change.taken;
  }
  if (changes.owners) record_trespasses(changes.taken);
  return changes;
}

/// Of the sandboxes in the way of a new owner, and of those that were in the way of one.
void Line::record_trespasses(const policy::CpuSet& taken) {
  const board::Trespasses& trespasses = node_.board.trespasses();
  for (const auto& [id, sandbox] : node_.sandboxes) {
    if (sandbox->uses(taken) || trespasses.is_open(id)) record_trespass(node_, *sandbox);
  }
}

/// A sandbox that is forgotten while its VM lives is released first. An operator who removes one
/// gets its threads as they were; one that ends is to leave other pods alone until it has.
Change Line::fold(const Event& event) {
  const auto* gone = std::get_if<policy::ledger::PodGone>(&event.body);
  if (Sandbox* sandbox = gone == nullptr ? nullptr : node_.sandboxes.find(gone->id)) {
    sandbox->set_released(true);
    sandbox->set_unlisted(event.source != policy::ledger::Source::kApi);
    run({sandbox});
    dead_.erase(sandbox->id());
  }
  Change change = node_.registry.fold(event);
  if (!change.former_pod.empty()) hand_over_vm(change);
  if (change.any) add_or_remove_sandbox(change.sandbox);
  return change;
}

/// What is kept of the former sandbox elsewhere goes by the notification.
void Line::hand_over_vm(const Change& change) {
  node_.sandboxes.hand_over(change.former_pod, *node_.registry.find(change.sandbox));
  unplaced_.erase(change.former_pod);
  node_.board.notify(board::NotificationKind::kSandboxPlanned, change.former_pod, {});
}

/// Pods of other runtimes have no run that saves them.
void Line::save_plain_pods(const Ids& pods) const {
  for (const std::string& id : pods) {
    const bool is_known = node_.registry.find(id) != nullptr;
    if (is_known && node_.sandboxes.find(id) == nullptr) node_.registry.save(id);
  }
}

/// Sandboxes that had the VMM of one of these pods for a process of their own: not after that one
/// has a plan.
Ids Line::holders_of_vmms(const Ids& pods) const {
  Ids holders;
  for (const std::string& pod : pods) {
    const policy::ledger::PodRecord* record = node_.registry.find(pod);
    if (record == nullptr || !record->vmm) continue;
    const Sandbox* planned = node_.sandboxes.find(pod);
    if (planned != nullptr && planned->has_process(record->vmm->pid)) continue;
    for (const auto& [id, sandbox] : node_.sandboxes) {
      if (id != pod && sandbox->has_process(record->vmm->pid)) holders.insert(id);
    }
  }
  return holders;
}

/// The sandboxes concerned, and those whose plan another map of owners changes: what they must
/// leave, they leave before anyone else is let onto it. The others are planned from what was last
/// observed of them, and observed and written to only where that makes a difference.
Affected Line::affected_by(const Changes& changes) const {
  Ids concerned = holders_of_vmms(changes.pods);
  concerned.insert(changes.pods.begin(), changes.pods.end());
  Affected affected;
  for (const std::string& id : concerned) {
    if (Sandbox* found = node_.sandboxes.find(id)) affected.push_back(found);
  }
  if (!changes.exclusive_map) return affected;
  const Affected others = changed_by_map(node_, concerned, unfinished_);
  affected.insert(affected.end(), others.begin(), others.end());
  return affected;
}

// --- in two halves

Outcome Line::narrow(const std::vector<Event>& events, std::chrono::nanoseconds budget) {
  const Changes changes = fold(events);
  const Outcome outcome = changes.pods.empty() ? Outcome{} : narrow_by(changes, budget);
  node_.cause.reset();
  return outcome;
}

Outcome Line::narrow_by(const Changes& changes, std::chrono::nanoseconds budget) {
  const auto start = node_.clock.now();
  Outcome outcome;
  for (const std::string& id : changes.pods) {
    if (node_.registry.find(id) != nullptr) unfinished_.insert(id);
  }
  map_changed_ |= changes.exclusive_map;
  for (Sandbox* sandbox : pressed_by(changes)) {
    unfinished_.insert(sandbox->id());
    if (node_.clock.now() - start >= budget) {
      ++outcome.late;
      continue;
    }
    Pass pass(node_, Extent::kNarrow);
    pass.narrow(*sandbox);
    outcome += pass.outcome();
    dead_.insert(pass.ended().begin(), pass.ended().end());
  }
  outcome.duration = node_.clock.now() - start;
  node_.board.counters().record(outcome);
  if (outcome.late > 0) {
    node_.board.notify(
        board::NotificationKind::kLate,
        changes.pods.size() == 1 ? *changes.pods.begin() : std::string(),
        messages::counted(outcome.late, "sandbox") + " narrowed only after the response");
  }
  return outcome;
}

/// The sandboxes that lost CPUs, and those with a thread on a CPU that has another owner since now.
/// Who else is to be planned anew waits for finish().
Affected Line::pressed_by(const Changes& changes) const {
  Affected pressed;
  for (const std::string& id : changes.narrowed) {
    if (Sandbox* concerned = node_.sandboxes.find(id)) pressed.push_back(concerned);
  }
  if (!changes.owners) return pressed;
  for (Sandbox* sandbox : node_.sandboxes.all()) {
    if (changes.narrowed.contains(sandbox->id())) continue;
    const bool unseen = sandbox->plan() == nullptr;
    const bool in_the_way =
        sandbox->uses(changes.taken) && sandbox->uses(node_.foreign_to(*sandbox));
    if (unseen || in_the_way) pressed.push_back(sandbox);
  }
  return pressed;
}

Outcome Line::finish(std::string_view sandbox) {
  Ids pods = std::exchange(unfinished_, {});
  if (node_.registry.consume_opened()) {
    for (const auto& [id, known] : node_.sandboxes) pods.insert(id);
  }
  pods.emplace(sandbox);
  save_plain_pods(pods);
  Changes changes{.pods = std::move(pods), .exclusive_map = std::exchange(map_changed_, false)};
  return run_and_follow_up(affected_by(changes));
}

}  // namespace ka::line
