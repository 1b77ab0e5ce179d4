// SPDX-License-Identifier: Apache-2.0
// The start of a daemon: what the state files give back, and from when on threads may get more CPUs
// than they have (policy/ledger/start_gate.hpp). And the state files after it, which are to tell
// the next start what it must know.
#include <utility>

#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/state/store.hpp"

namespace ka::engine {

using Phase = policy::ledger::StartGate::Phase;

Outcome Engine::adopt() {
  load_state();
  if (!gate_.may_widen())
    board_.notify(NotificationKind::kStartWaiting, {}, messages::waiting_text(gate_));
  just_opened_ = false;
  unfinished_.clear();
  return run_all();
}

void Engine::load_state() {
  const state::Loaded loaded = store_.load();
  for (const state::Saved& saved : loaded.pods) {
    if (!is_adoptable(saved.pod)) continue;
    take_back(saved);
    unfinished_.insert(saved.pod.id);
  }
  step_gate([&] { gate_.set_lost(loaded.lost); });
}

/// Where a source was quicker than the file, its word stays; what only the file knows is added.
void Engine::take_back(const state::Saved& saved) {
  const std::string& id = saved.pod.id;
  const policy::ledger::PodRecord* told = ledger_.find(id);
  if (told == nullptr) {
    ledger_.restore(saved.pod);
  } else {
    for (const policy::ledger::Pin& by_hand : saved.pod.overrides) {
      ledger_.apply({policy::ledger::Source::kState,
                     policy::ledger::OverrideSet{.sandbox = id, .value = by_hand}});
    }
    if (told->vmm != saved.pod.vmm) return;
  }
  if (!saved.pod.vmm) return;
  if (const Sandbox* known = find(id)) count_floating(*known, -1);
  auto sandbox = std::make_unique<Sandbox>(id);
  sandbox->restore(saved);
  count_floating(*sandbox, 1);
  sandboxes_[id] = std::move(sandbox);
  board_.add_sandbox(id);
  if (!(saved.guest == state::SavedGuest())) {
    board_.restore_guest(id, {.address = saved.guest.told.address,
                              .text = "not connected since the start",
                              .told = saved.guest.told,
                              .plugged = saved.guest.plugged});
  }
  board_.notify(NotificationKind::kSandboxAdopted, id, "known from the previous daemon");
}

void Engine::source_spoke(policy::ledger::Source source) {
  step_gate([&] { gate_.spoke(source); });
}

Outcome Engine::stop_waiting() {
  const bool waited = gate_.phase() == Phase::kWaiting;
  step_gate([this] { gate_.expire(); });
  if (!waited) return {};
  board_.notify(NotificationKind::kStartLate, {}, messages::silent_text(gate_, kStartPatience));
  return finish({});
}

void Engine::dismiss_lost_state() {
  store_.give_up_unread();
  step_gate([this] { gate_.dismiss_lost(); });
  just_opened_ = false;
}

/// A step that lets more be written is told, and followed by a run of the line for all.
void Engine::step_gate(const std::function<void()>& step) {
  const Phase before = gate_.phase();
  step();
  if (gate_.phase() == before) return;
  if (!gate_.may_widen()) {
    board_.notify(NotificationKind::kStartWaiting, {}, messages::waiting_text(gate_));
    return;
  }
  just_opened_ = true;
  store_.dismiss_damaged();
  board_.notify(NotificationKind::kStartComplete, {}, "threads may be widened from now on");
}

/// What could not be read or written may be possible by now.
void Engine::retry_state() {
  if (store_.has_lost()) load_state();
  for (const auto& [pod, reason] : std::map(unsaved_)) {
    if (ledger_.find(pod) != nullptr) {
      save(pod);
    } else {
      drop_state(pod);
    }
  }
}

void Engine::save(const std::string& pod) {
  const policy::ledger::PodRecord& record = *ledger_.find(pod);
  const Sandbox* sandbox = find(pod);
  state::Saved saved = sandbox == nullptr ? state::Saved{.pod = record} : sandbox->saved(record);
  if (const board::GuestView* guest = board_.guest(pod))
    saved.guest = {guest->told, guest->plugged};
  enter_saved(pod, store_.save(saved));
}

void Engine::drop_state(const std::string& pod) { enter_saved(pod, store_.remove(pod)); }

/// Told once for each reason, however often it is tried.
void Engine::enter_saved(const std::string& pod, const base::Result<void>& done) {
  if (done) {
    if (unsaved_.erase(pod) > 0)
      board_.notify(NotificationKind::kStateSaved, pod, "state written again");
    return;
  }
  ++board_.counters().errors["state"];
  const std::string& reason = done.error().message;
  if (std::exchange(unsaved_[pod], reason) == reason) return;
  board_.notify(NotificationKind::kStateUnsaved, pod,
                "state not on disk, a restart would load an older one: " + reason, reason);
}

}  // namespace ka::engine
