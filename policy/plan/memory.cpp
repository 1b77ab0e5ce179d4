// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/memory.hpp"

#include <algorithm>
#include <limits>

namespace ka::policy::plan {
namespace {

constexpr std::uint64_t kNegligible = 100;  ///< this fraction may be elsewhere

/// How far memory on a node is for the nearest of these nodes' CPUs.
int distance_to(const Topology& topology, const NodeSet& nodes, int node) {
  int nearest = std::numeric_limits<int>::max();
  for (const int from : nodes) nearest = std::min(nearest, topology.distance(from, node));
  return nearest;
}

/// Huge pages are reserved for VMs that use them; small pages are for all.
NodeBytes room_of(const MemoryPart& part) {
  NodeBytes room = part.free;
  for (auto& [node, bytes] : room) {
    if (part.page <= kLargestBasePage) bytes -= bytes / 8;
    bytes -= bytes % part.page;
  }
  return room;
}

/// Nodes that are equally good for the memory of one node, best first.
using Choices = std::map<int, std::vector<int>>;

/// The wanted nodes by how near they are to where the memory is.
Choices wanted_nodes(const Topology& topology, const NodeSet& wanted, int from) {
  Choices choices;
  for (const int node : wanted) choices[topology.distance(from, node)].push_back(node);
  return choices;
}

/// Other nodes, by how near they are to the wanted ones: nearer than where the memory is.
Choices next_best(const Topology& topology, const NodeSet& wanted, const NodeSet& allowed,
                  int from) {
  Choices choices;
  const int now = distance_to(topology, wanted, from);
  for (const int node : allowed - wanted) {
    const int distance = distance_to(topology, wanted, node);
    if (node != from && distance < now) choices[distance].push_back(node);
  }
  return choices;
}

class Mover {
 public:
  Mover(std::uint64_t page, NodeBytes room, std::vector<MemoryMove>& moves)
      : page_(page), room_(std::move(room)), moves_(moves) {}

  /// Gives each node of a rank the same share, and what one has no room for to the others.
  void spread(int from, const Choices& choices, std::uint64_t& left) {
    for (const auto& [distance, nodes] : choices) {
      std::vector<int> by_room = nodes;  // what the fullest cannot take, the others still can
      std::ranges::stable_sort(by_room, {}, [this](int node) { return room_[node]; });
      std::uint64_t remaining = by_room.size();
      for (const int node : by_room)
        assign(from, node, left, rounded_up(left / page_, remaining--));
    }
  }

 private:
  static std::uint64_t rounded_up(std::uint64_t number, std::uint64_t parts) {
    return (number + parts - 1) / parts;
  }

  void assign(int from, int to, std::uint64_t& left, std::uint64_t pages) {
    const std::uint64_t bytes = std::min(pages * page_, room_[to]);
    if (bytes == 0) return;
    moves_.push_back({page_, from, to, bytes});
    room_[to] -= bytes;
    left -= bytes;
  }

  std::uint64_t page_;
  NodeBytes room_;
  std::vector<MemoryMove>& moves_;
};

void plan_part(const Topology& topology, const MemoryPart& part, const NodeSet& allowed,
               MemoryPlan& plan) {
  const NodeSet targets = plan.wanted & allowed;
  Mover mover(part.page, room_of(part), plan.moves);
  for (const auto& [node, bytes] : part.placed) {
    if (plan.wanted.contains(node)) continue;
    std::uint64_t left = bytes;
    mover.spread(node, wanted_nodes(topology, targets, node), left);
    mover.spread(node, next_best(topology, plan.wanted, allowed, node), left);
  }
}

std::uint64_t sum(const NodeBytes& bytes, const NodeSet& without) {
  std::uint64_t sum = 0;
  for (const auto& [node, number] : bytes) sum += without.contains(node) ? 0 : number;
  return sum;
}

}  // namespace

std::string_view memory_verdict_name(MemoryVerdict verdict) {
  switch (verdict) {
    case MemoryVerdict::kAnywhere:
      return "anywhere";
    case MemoryVerdict::kInPlace:
      return "in-place";
    case MemoryVerdict::kMove:
      return "move";
    case MemoryVerdict::kDevice:
      return "device";
    case MemoryVerdict::kNoNode:
      return "no-node";
    case MemoryVerdict::kNoRoom:
      return "no-room";
  }
  return "unknown";
}

MemoryPlan plan_memory(const Topology& topology, const NodeSet& mems, const MemoryFacts& facts) {
  MemoryPlan plan;
  plan.wanted = mems & topology.nodes();
  if (plan.wanted.empty()) return plan;
  std::uint64_t all = 0;
  for (const MemoryPart& part : facts.parts) {
    all += sum(part.placed, {});
    plan.misplaced += sum(part.placed, plan.wanted);
  }
  plan.verdict = MemoryVerdict::kInPlace;
  if (plan.misplaced <= all / kNegligible) return plan;
  plan.verdict = MemoryVerdict::kDevice;
  if (!facts.device.empty()) return plan;
  plan.verdict = MemoryVerdict::kNoNode;
  if (!plan.wanted.intersects(facts.allowed)) return plan;
  for (const MemoryPart& part : facts.parts) plan_part(topology, part, facts.allowed, plan);
  plan.verdict = plan.moves.empty() ? MemoryVerdict::kNoRoom : MemoryVerdict::kMove;
  return plan;
}

}  // namespace ka::policy::plan
