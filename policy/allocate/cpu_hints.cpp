// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/cpu_hints.hpp"

#include "policy/allocate/node_sets.hpp"

namespace ka::policy::allocate {
namespace {

/// Every hint must hold the reusable CPUs: their nodes are required.
std::vector<NodeRoom> rooms_of(const Machine& machine, const CpuHintProblem& problem) {
  const CpuSet free = problem.available | problem.reusable;
  std::vector<NodeRoom> rooms;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) {
    const CpuSet& cpus = machine.topology().node_cpus(node.id);
    rooms.push_back({node.id, (free & cpus).size(), problem.reusable.intersects(cpus)});
  }
  return rooms;
}

bool lie_on_nodes(const Machine& machine, const CpuSet& cpus) {
  CpuSet all;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) {
    all |= machine.topology().node_cpus(node.id);
  }
  return cpus.subset_of(all);
}

/// The fewest nodes that would hold the request if all their CPUs were free.
int least_nodes(const Machine& machine, int cpus) {
  std::vector<std::int64_t> sizes;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) sizes.push_back(node.size);
  return least_groups(std::move(sizes), cpus);
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
  if (!lie_on_nodes(machine, problem.reusable)) return {};
  const int least = least_nodes(machine, problem.cpus);
  const bool by_socket = problem.options.has(CpuOption::kAlignBySocket);
  std::vector<Hint> hints;
  for (NodeSet& nodes : sets_with_room(machine, rooms_of(machine, problem), problem.cpus)) {
    const bool preferred =
        nodes.size() == least || (by_socket && socket_aligned(machine, nodes, least));
    hints.push_back({std::move(nodes), preferred});
  }
  return hints;
}

}  // namespace ka::policy::allocate
