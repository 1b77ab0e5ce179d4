// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/isolation.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "affinity/line/node.hpp"
#include "affinity/line/planning.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/messages/contests.hpp"
#include "affinity/messages/isolation.hpp"

namespace ka::line {
namespace {

using board::NotificationKind;
using policy::ledger::Contender;
using policy::ledger::Contest;
using policy::plan::ContainerIsolation;
using policy::plan::NotIsolated;
using policy::plan::Obstacle;
using policy::plan::Placing;
using policy::plan::Remedy;

policy::plan::GuestSide guest_side(const board::GuestView* guest) {
  if (guest == nullptr) return {};
  return {guest->connected, guest->current, &guest->spec, guest->report ? &*guest->report : nullptr,
          &guest->doubts};
}

Placing placing_of(const Node& node, const Sandbox& sandbox) {
  if (!node.options.enable) return Placing::kDisabled;
  if (node.is_given_back(sandbox)) return Placing::kReleased;
  return node.options.observe ? Placing::kObserved : Placing::kWritten;
}

/// The obstacle of contested CPUs, with everyone who owns them too.
NotIsolated contested_by(const std::vector<Contest>& rivals) {
  NotIsolated contested{Obstacle::kCpusContested, {}, cpus_of(rivals), Remedy::kOneOwner};
  std::set<Contender> all;
  for (const Contest& contest : rivals) {
    all.insert(contest.contenders.begin(), contest.contenders.end());
  }
  contested.subject = messages::contender_list({all.begin(), all.end()});
  return contested;
}

/// What is planned knows that a CPU is contested, but not by whom.
void name_rivals(const Node& node, const policy::ledger::PodRecord& pod,
                 ContainerIsolation& container) {
  const auto rivals = rivals_of(node.registry.contests(), pod, container.container);
  if (rivals.empty()) return;
  std::erase_if(container.obstacles,
                [](const NotIsolated& one) { return one.obstacle == Obstacle::kCpusContested; });
  container.obstacles.push_back(contested_by(rivals));
  std::ranges::stable_sort(container.obstacles, {}, &NotIsolated::obstacle);
}

std::vector<ContainerIsolation> isolation_of(const Node& node, const Sandbox& sandbox) {
  if (sandbox.plan() == nullptr) return {};
  const policy::ledger::PodRecord& pod = node.pod_of(sandbox);
  auto containers = policy::plan::isolation_of(
      node_view(node, sandbox), sandbox.facts(pod), node.settings_for(pod), *sandbox.plan(),
      actual_threads(sandbox.threads()), guest_side(node.board.guest(sandbox.id())),
      placing_of(node, sandbox));
  for (ContainerIsolation& container : containers) name_rivals(node, pod, container);
  return containers;
}

bool awaits_guest(const ContainerIsolation& container) {
  return std::ranges::any_of(container.obstacles, [](const policy::plan::NotIsolated& one) {
    return one.obstacle == policy::plan::Obstacle::kGuestUnconfirmed && one.subject == "behind";
  });
}

}  // namespace

std::vector<policy::plan::ActualThread> actual_threads(const std::vector<ThreadView>& threads) {
  std::vector<policy::plan::ActualThread> actual;
  actual.reserve(threads.size());
  for (const ThreadView& thread : threads) {
    if (thread.seen) actual.push_back({thread.facts, thread.actual});
  }
  return actual;
}

void IsolationRecord::set(Containers containers) {
  containers_ = std::move(containers);
  std::erase_if(announced_, [&](const auto& entry) {
    return std::ranges::find(containers_, entry.first, &ContainerIsolation::container) ==
           containers_.end();
  });
}

bool IsolationRecord::announce(const std::string& container, const std::string& obstacles) {
  const auto [known, added] = announced_.try_emplace(container, obstacles);
  if (!added && known->second == obstacles) return false;
  known->second = obstacles;
  return true;
}

void update_isolation(const Node& node, Sandbox& sandbox) {
  auto containers = isolation_of(node, sandbox);
  if (containers == sandbox.isolation().containers()) return;
  for (const ContainerIsolation& container : containers) {
    if (awaits_guest(container)) continue;
    const std::string obstacles = messages::obstacle_names(container);
    if (!sandbox.isolation().announce(container.container, obstacles)) continue;
    node.board.notify(container.isolated() ? NotificationKind::kContainerIsolated
                                           : NotificationKind::kContainerNotIsolated,
                      sandbox.id(), messages::isolation_text(container), obstacles,
                      container.container);
  }
  sandbox.isolation().set(std::move(containers));
}

}  // namespace ka::line
