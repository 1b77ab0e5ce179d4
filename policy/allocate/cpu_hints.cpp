// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/cpu_hints.hpp"

#include <algorithm>
#include <map>

namespace ka::policy::allocate {
namespace {

/// What a request may take on a node.
struct Room {
  int node = 0;
  int free = 0;
  bool reused = false;  ///< holds reusable CPUs: no hint can do without it
};

std::vector<Room> rooms_of(const Machine& machine, const CpuHintProblem& problem) {
  const CpuSet free = problem.available | problem.reusable;
  std::vector<Room> rooms;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) {
    const CpuSet& cpus = machine.topology().node_cpus(node.id);
    rooms.push_back({node.id, (free & cpus).size(), problem.reusable.intersects(cpus)});
  }
  return rooms;
}

/// Some of the rooms.
struct Chosen {
  NodeSet nodes;
  int free = 0;
  int reused = 0;  ///< how many of them hold reusable CPUs

  void add(const Room& room) {
    nodes.add(room.node);
    free += room.free;
    reused += room.reused ? 1 : 0;
  }
};

/// Finds the sets of nodes that hold a request.
class Search {
 public:
  Search(const Machine& machine, const CpuHintProblem& problem)
      : machine_(machine), rooms_(rooms_of(machine, problem)), cpus_(problem.cpus) {
    CpuSet online;
    for (const Room& room : rooms_) online |= machine.topology().node_cpus(room.node);
    possible_ = problem.reusable.subset_of(online);
    for (const Room& room : rooms_) reused_ += room.reused ? 1 : 0;
  }

  std::vector<NodeSet> sets() {
    if (!possible_) return {};
    return rooms_.size() <= kAllNodeSets ? all_sets() : near_sets();
  }

 private:
  bool holds(const Chosen& chosen) const {
    return chosen.reused == reused_ && chosen.free >= cpus_;
  }

  std::vector<NodeSet> all_sets() {
    for (std::size_t size = 1; size <= rooms_.size(); ++size) add_sets(size, 0, {});
    return std::move(found_);
  }

  /// Sets of `size` more nodes in lexicographic order (bitmask.IterateBitMasks).
  void add_sets(std::size_t size, std::size_t from, const Chosen& chosen) {
    for (std::size_t i = from; i + size <= rooms_.size(); ++i) {
      Chosen more = chosen;
      more.add(rooms_[i]);
      if (size > 1) {
        add_sets(size - 1, i + 1, more);
      } else if (holds(more)) {
        found_.push_back(std::move(more.nodes));
      }
    }
  }

  std::vector<NodeSet> near_sets() {
    Chosen all;
    for (const Room& room : rooms_) all.add(room);
    if (!holds(all)) return {};
    // Size and ids: the order of all_sets().
    std::map<std::pair<std::size_t, std::vector<int>>, NodeSet> sets;
    const auto keep = [&sets](NodeSet nodes) {
      std::vector<int> ids = nodes.ids();
      const std::size_t size = ids.size();
      sets.emplace(std::pair(size, std::move(ids)), std::move(nodes));
    };
    for (std::size_t seed = 0; seed < rooms_.size(); ++seed) {
      keep(grown_from(static_cast<int>(seed)));
    }
    keep(std::move(all.nodes));
    for (auto& [key, nodes] : sets) found_.push_back(std::move(nodes));
    return std::move(found_);
  }

  /// The nearest nodes are added one by one.
  NodeSet grown_from(int seed) const {
    Chosen chosen;
    for (const int number : machine_.nodes_near(seed)) {
      chosen.add(rooms_[static_cast<std::size_t>(number)]);
      if (holds(chosen)) break;
    }
    return std::move(chosen.nodes);
  }

  const Machine& machine_;
  std::vector<Room> rooms_;
  int cpus_;
  int reused_ = 0;
  bool possible_ = false;  ///< every reusable CPU lies on a node
  std::vector<NodeSet> found_;
};

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
  const int least = least_nodes(machine, problem.cpus);
  const bool by_socket = problem.options.has(CpuOption::kAlignBySocket);
  std::vector<Hint> hints;
  for (NodeSet& nodes : Search(machine, problem).sets()) {
    const bool preferred =
        nodes.size() == least || (by_socket && socket_aligned(machine, nodes, least));
    hints.push_back({std::move(nodes), preferred});
  }
  return hints;
}

}  // namespace ka::policy::allocate
