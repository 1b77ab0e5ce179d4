// SPDX-License-Identifier: Apache-2.0
#include "affinity/engine/isolation.hpp"

#include <algorithm>

#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"
#include "affinity/messages/isolation.hpp"

namespace ka::engine {

using policy::plan::Obstacle;

std::vector<policy::plan::ActualThread> actual_threads(const std::vector<ThreadView>& threads) {
  std::vector<policy::plan::ActualThread> actual;
  actual.reserve(threads.size());
  for (const ThreadView& thread : threads) {
    if (thread.seen) actual.push_back({thread.facts, thread.actual});
  }
  return actual;
}

/// By the masks that were read last.
std::vector<policy::plan::ContainerIsolation> Engine::isolation_of(const Sandbox& sandbox) const {
  if (sandbox.plan() == nullptr) return {};
  const policy::ledger::PodRecord& pod = *ledger_.find(sandbox.id());
  const board::GuestView* guest = board_.guest(sandbox.id());
  policy::plan::GuestSide side;
  if (guest != nullptr) {
    side = {guest->connected, guest->current, &guest->wishes,
            guest->report ? &*guest->report : nullptr, &guest->doubts};
  }
  const policy::plan::Placing placing = is_given_back(sandbox) ? policy::plan::Placing::kReleased
                                        : options_.observe     ? policy::plan::Placing::kObserved
                                                               : policy::plan::Placing::kWritten;
  return policy::plan::isolation_of(node_view(sandbox.id()), sandbox.facts(pod), settings_for(pod),
                                    *sandbox.plan(), actual_threads(sandbox.threads()), side,
                                    placing);
}

/// Says once of each container that it became isolated, or why it is not any more. A guest that has
/// yet to answer the last change is waited for.
void Engine::follow_isolation(Sandbox& sandbox) {
  auto containers = isolation_of(sandbox);
  if (containers == sandbox.isolation()) return;
  for (const policy::plan::ContainerIsolation& container : containers) {
    const auto is_behind = [](const policy::plan::NotIsolated& one) {
      return one.obstacle == Obstacle::kGuestUnconfirmed && one.subject == "behind";
    };
    if (std::ranges::any_of(container.obstacles, is_behind)) continue;
    if (!sandbox.announce(container.container, messages::obstacle_names(container))) continue;
    board_.notify(container.isolated() ? NotificationKind::kContainerIsolated
                                       : NotificationKind::kContainerNotIsolated,
                  sandbox.id(), messages::isolation_text(container),
                  messages::obstacle_names(container), container.container);
  }
  sandbox.set_isolation(std::move(containers));
}

}  // namespace ka::engine
