// The line in two halves, for a source that waits for an answer: what takes CPUs away at once, all
// else when the source's part is done.
#include <utility>

#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"

namespace ka::engine {

Outcome Engine::narrow(const policy::Event& event, std::chrono::nanoseconds budget) {
  const policy::Change change = take(event);
  const Outcome outcome = change.any ? narrow_by(change, budget) : Outcome{};
  cause_.reset();
  return outcome;
}

Outcome Engine::narrow_by(const policy::Change& change, std::chrono::nanoseconds budget) {
  const auto start = clock_.now();
  Outcome outcome;
  if (ledger_.find(change.sandbox) != nullptr) unfinished_.insert(change.sandbox);
  map_changed_ |= change.exclusive_map;
  for (Sandbox* sandbox : pressed_by(change)) {
    unfinished_.insert(sandbox->id());
    if (clock_.now() - start < budget) {
      narrow_one(*sandbox, outcome);
    } else {
      ++outcome.late;
    }
  }
  outcome.duration = clock_.now() - start;
  counters_.writes += static_cast<std::uint64_t>(outcome.writes);
  counters_.late += static_cast<std::uint64_t>(outcome.late);
  if (outcome.late > 0) {
    happened("late", change.sandbox,
             std::to_string(outcome.late) + " sandboxes are narrowed only after the answer");
  }
  return outcome;
}

/// The sandbox concerned, and where the map of owners changed those with a thread on a CPU that
/// belongs to somebody else. Who else is to be planned anew waits for finish().
Engine::Affected Engine::pressed_by(const policy::Change& change) const {
  Affected pressed;
  if (Sandbox* concerned = find(change.sandbox)) pressed.push_back(concerned);
  if (!change.exclusive_map) return pressed;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (id == change.sandbox) continue;
    const bool unseen = sandbox->plan() == nullptr;
    if (unseen || sandbox->uses(ledger_.exclusive_to_others(id))) pressed.push_back(sandbox.get());
  }
  return pressed;
}

void Engine::narrow_one(Sandbox& sandbox, Outcome& outcome) {
  base::ThreadStats stats(proc_.root());
  if (!would_narrow(sandbox) || !observe_one(sandbox, stats)) return;
  plan(sandbox);
  ++outcome.planned;
  apply_to({&sandbox}, Extent::kNarrow, stats, outcome);
  see_trespass(sandbox);
}

/// Whether its plan, made from what was last seen of it, takes CPUs away from any of its threads.
bool Engine::would_narrow(Sandbox& sandbox) {
  if (sandbox.plan() == nullptr) return true;
  plan(sandbox);
  return !policy::diff(placements_to_write(sandbox, Extent::kNarrow)).empty();
}

Outcome Engine::finish(std::string_view sandbox) {
  auto pods = std::exchange(unfinished_, {});
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
    for (Sandbox* changed : changed_by_map(sandbox)) {
      if (!pods.contains(changed->id())) affected.push_back(changed);
    }
  }
  Outcome outcome = run(std::move(affected));
  outcome += settle();
  return outcome;
}

}  // namespace ka::engine
