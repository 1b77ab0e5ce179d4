// SPDX-License-Identifier: Apache-2.0
// The line in two halves, for a source that waits for an answer: what takes CPUs away at once, all
// else when the source's part is done.
#include <utility>

#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::engine {

Outcome Engine::narrow(const std::vector<policy::ledger::Event>& events,
                       std::chrono::nanoseconds budget) {
  const Changes changes = take(events);
  const Outcome outcome = changes.pods.empty() ? Outcome{} : narrow_by(changes, budget);
  cause_.reset();
  return outcome;
}

Outcome Engine::narrow_by(const Changes& changes, std::chrono::nanoseconds budget) {
  const auto start = clock_.now();
  Outcome outcome;
  for (const std::string& id : changes.pods) {
    if (ledger_.find(id) != nullptr) unfinished_.insert(id);
  }
  map_changed_ |= changes.exclusive_map;
  for (Sandbox* sandbox : pressed_by(changes)) {
    unfinished_.insert(sandbox->id());
    if (clock_.now() - start < budget) {
      narrow_one(*sandbox, outcome);
    } else {
      ++outcome.late;
    }
  }
  outcome.duration = clock_.now() - start;
  board_.counters().record(outcome);
  if (outcome.late > 0) {
    board_.notify(NotificationKind::kLate,
                  changes.pods.size() == 1 ? *changes.pods.begin() : std::string(),
                  messages::counted(outcome.late, "sandbox") + " narrowed only after the response");
  }
  return outcome;
}

/// The sandboxes concerned, and those with a thread on a CPU that belongs to somebody else since
/// now. Who else is to be planned anew waits for finish().
Engine::Affected Engine::pressed_by(const Changes& changes) const {
  Affected pressed;
  for (const std::string& id : changes.pods) {
    if (Sandbox* concerned = find(id)) pressed.push_back(concerned);
  }
  if (!changes.exclusive_map) return pressed;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (changes.pods.contains(id)) continue;
    const bool unseen = sandbox->plan() == nullptr;
    const bool in_the_way =
        sandbox->uses(changes.taken) && sandbox->uses(ledger_.exclusive_to_others(id));
    if (unseen || in_the_way) pressed.push_back(sandbox.get());
  }
  return pressed;
}

void Engine::narrow_one(Sandbox& sandbox, Outcome& outcome) {
  base::ThreadStats stats(proc_.root());
  if (!would_narrow(sandbox) || !observe_one(sandbox, stats, outcome)) return;
  plan(sandbox);
  ++outcome.planned;
  apply_to({&sandbox}, Extent::kNarrow, stats, outcome);
  see_trespass(sandbox);
}

/// Whether its plan, made from what was last seen of it, takes CPUs away from any of its threads,
/// or others' CPUs from an interrupt.
bool Engine::would_narrow(Sandbox& sandbox) {
  if (sandbox.plan() == nullptr) return true;
  plan(sandbox);
  return interrupts_must_leave(sandbox) ||
         !policy::plan::diff(placements_to_write(sandbox, Extent::kNarrow)).empty();
}

Outcome Engine::finish(std::string_view sandbox) {
  Ids pods = std::exchange(unfinished_, {});
  if (std::exchange(just_opened_, false)) {
    for (const auto& [id, known] : sandboxes_) pods.insert(id);
  }
  pods.emplace(sandbox);
  Affected affected;
  for (const std::string& id : pods) {
    if (Sandbox* found = find(id)) {
      affected.push_back(found);
    } else if (ledger_.find(id) != nullptr) {
      save(id);
    }
  }
  if (std::exchange(map_changed_, false)) {
    for (Sandbox* changed : changed_by_map(pods)) affected.push_back(changed);
  }
  Outcome outcome = run(std::move(affected));
  outcome += settle();
  return outcome;
}

}  // namespace ka::engine
