// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/cpu_hints.hpp"

#include <algorithm>

namespace ka::policy {
namespace {

std::vector<int> cpu_nodes(const Machine& machine) {
  std::vector<int> ids;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) ids.push_back(node.id);
  return ids;
}

bool holds(const Machine& machine, const CpuHintProblem& problem, const NodeSet& nodes) {
  const CpuSet cpus = machine.cpus_of_nodes(nodes);
  const CpuSet free = (problem.available | problem.reusable) & cpus;
  return problem.reusable.subset_of(cpus) && free.size() >= problem.cpus;
}

/// Sets of `size` nodes in lexicographic order (bitmask.IterateBitMasks).
void add_sets(const std::vector<int>& ids, std::size_t size, std::size_t from, NodeSet chosen,
              std::vector<NodeSet>& sets) {
  if (size == 0) {
    sets.push_back(std::move(chosen));
    return;
  }
  for (std::size_t i = from; i + size <= ids.size(); ++i) {
    NodeSet longer = chosen;
    longer.add(ids[i]);
    add_sets(ids, size - 1, i + 1, std::move(longer), sets);
  }
}

std::vector<NodeSet> all_sets(const std::vector<int>& ids) {
  std::vector<NodeSet> sets;
  for (std::size_t size = 1; size <= ids.size(); ++size) add_sets(ids, size, 0, {}, sets);
  return sets;
}

NodeSet grown_from(const Machine& machine, const CpuHintProblem& problem, int seed) {
  std::vector<int> ids = cpu_nodes(machine);
  std::ranges::stable_sort(
      ids, {}, [&](int id) { return id == seed ? -1 : machine.topology().distance(seed, id); });
  NodeSet nodes;
  for (const int id : ids) {
    nodes.add(id);
    if (holds(machine, problem, nodes)) break;
  }
  return nodes;
}

std::vector<NodeSet> near_sets(const Machine& machine, const CpuHintProblem& problem) {
  const std::vector<int> ids = cpu_nodes(machine);
  std::vector<NodeSet> sets;
  for (const int seed : ids) sets.push_back(grown_from(machine, problem, seed));
  sets.emplace_back();
  for (const int id : ids) sets.back().add(id);
  std::ranges::sort(sets, {}, [](const NodeSet& set) { return std::pair(set.size(), set.ids()); });
  const auto repeated = std::ranges::unique(sets);
  sets.erase(repeated.begin(), repeated.end());
  return sets;
}

/// The fewest nodes that would hold the request if all their CPUs were free.
int least_nodes(const Machine& machine, int cpus) {
  std::vector<int> sizes;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) sizes.push_back(node.size);
  std::ranges::sort(sizes, std::greater{});
  int nodes = 0;
  for (const int size : sizes) {
    if (cpus <= 0 && nodes > 0) break;
    cpus -= size;
    ++nodes;
  }
  return nodes;
}

int sockets_of(const Machine& machine, const NodeSet& nodes) {
  int sockets = 0;
  const CpuSet cpus = machine.cpus_of_nodes(nodes);
  for (const CpuGroup& socket : machine.groups(CpuLevel::kSocket)) {
    if (socket.cpus.intersects(cpus)) ++sockets;
  }
  return sockets;
}

bool socket_aligned(const Machine& machine, const NodeSet& nodes, int least) {
  const int per_socket = static_cast<int>(machine.groups(CpuLevel::kNode).size() /
                                          machine.groups(CpuLevel::kSocket).size());
  if (per_socket == 0) return false;
  return sockets_of(machine, nodes) == (least + per_socket - 1) / per_socket;
}

}  // namespace

std::vector<Hint> cpu_hints(const Machine& machine, const CpuHintProblem& problem) {
  const std::vector<int> ids = cpu_nodes(machine);
  const int least = least_nodes(machine, problem.cpus);
  const bool by_socket = problem.options.has(CpuOption::kAlignBySocket);
  std::vector<Hint> hints;
  for (NodeSet& nodes : ids.size() <= kAllNodeSets ? all_sets(ids) : near_sets(machine, problem)) {
    if (!holds(machine, problem, nodes)) continue;
    const bool preferred =
        nodes.size() == least || (by_socket && socket_aligned(machine, nodes, least));
    hints.push_back({std::move(nodes), preferred});
  }
  return hints;
}

}  // namespace ka::policy
