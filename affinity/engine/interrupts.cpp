// SPDX-License-Identifier: Apache-2.0
// The interrupts of passed-through devices: sent where the plan has the vCPUs that may take them.
#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"
#include "affinity/messages/events.hpp"

namespace ka::engine {

void Engine::place_interrupts(Sandbox& sandbox, Extent extent, Outcome& outcome) {
  const bool give_back = is_given_back(sandbox);
  if ((options_.observe && !give_back) || !gate_.may_widen()) return;
  InterruptKeeper& keeper = sandbox.interrupts();
  const policy::CpuSet foreign = ledger_.exclusive_to_others(sandbox.id());
  const InterruptWrites writes = give_back ? keeper.give_back(roots_, foreign)
                                 : extent == Extent::kAll
                                     ? keeper.place(roots_, foreign, clock_.now())
                                     : keeper.leave(roots_, foreign, clock_.now());
  outcome.interrupts += writes.done;
  outcome.errors.transient += writes.failed;
  outcome.errors.permission += static_cast<int>(writes.refused.size());
  for (const std::string& text : writes.refused)
    board_.notify(NotificationKind::kUnmanaged, sandbox.id(), text);
}

bool Engine::interrupts_must_leave(const Sandbox& sandbox) const {
  const bool writes = !options_.observe && !is_given_back(sandbox);
  return writes && sandbox.interrupts().must_leave(ledger_.exclusive_to_others(sandbox.id()));
}

void Engine::find_interrupt_drift(const Sandbox& sandbox) {
  const int moved = sandbox.interrupts().count_changed(roots_, sandbox.seen().vmm_pid);
  if (moved == 0) return;
  board_.counters().interrupt_drift_found += static_cast<std::uint64_t>(moved);
  board_.notify(NotificationKind::kDrift, sandbox.id(), messages::drift_text(moved, "interrupt"));
}

}  // namespace ka::engine
