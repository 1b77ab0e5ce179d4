// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/topology.hpp"

#include <algorithm>

namespace ka::policy {
namespace {

using Distances = std::vector<std::vector<int>>;

constexpr int kLocalDistance = 10;
constexpr int kRemoteDistance = 20;
/// Ids of cores, sockets and caches are taken from firmware and need not be small.
constexpr int kMaxGroupId = 1 << 24;

std::string check_cpu(const Cpu& cpu) {
  const std::string name = "cpu " + std::to_string(cpu.cpu);
  if (cpu.cpu < 0 || cpu.cpu >= kMaxIds) return name + ": number is out of bounds";
  if (cpu.numa < 0 || cpu.numa >= kMaxIds) return name + ": numa is out of bounds";
  for (const int id : {cpu.core, cpu.socket, cpu.l3}) {
    if (id < 0 || id > kMaxGroupId) return name + ": core, socket or l3 is out of bounds";
  }
  return {};
}

std::string check_cpus(const std::vector<Cpu>& cpus) {
  std::map<int, int> socket_of_core;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    if (auto wrong = check_cpu(cpus[i]); !wrong.empty()) return wrong;
    if (i > 0 && cpus[i].cpu == cpus[i - 1].cpu) {
      return "cpu " + std::to_string(cpus[i].cpu) + ": listed twice";
    }
    const auto [found, added] = socket_of_core.emplace(cpus[i].core, cpus[i].socket);
    if (!added && found->second != cpus[i].socket) {
      return "core " + std::to_string(cpus[i].core) + ": lies on two sockets";
    }
  }
  return {};
}

std::string check_matrix(const Distances& distances, std::size_t nodes) {
  if (distances.size() != nodes) {
    return "distances: " + std::to_string(distances.size()) + " rows for " + std::to_string(nodes) +
           " nodes";
  }
  for (const auto& row : distances) {
    if (row.size() != nodes) return "distances: the matrix is not square";
    if (std::ranges::any_of(row, [](int d) { return d < 0; })) return "distances: below 0";
  }
  return {};
}

Distances default_distances(std::size_t nodes) {
  Distances matrix(nodes, std::vector<int>(nodes, kRemoteDistance));
  for (std::size_t i = 0; i < nodes; ++i) matrix[i][i] = kLocalDistance;
  return matrix;
}

/// The nodes that rows stand for: as named, else those of the CPUs; more rows than such nodes, as
/// recorded machines have for nodes without CPUs, count from 0.
std::vector<int> row_nodes(const std::vector<Cpu>& cpus, std::size_t rows) {
  NodeSet nodes;
  for (const Cpu& cpu : cpus) nodes.add(cpu.numa);
  if (rows > static_cast<std::size_t>(nodes.size())) {
    nodes |= NodeSet::range(0, static_cast<int>(rows) - 1);
  }
  return nodes.ids();
}

/// Brings rows and columns into ascending order of the nodes they stand for.
void sort_rows(std::vector<int>& nodes, Distances& distances) {
  std::vector<std::size_t> order(nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return nodes[i]; });
  Distances sorted(nodes.size());
  std::vector<int> ids;
  for (std::size_t i = 0; i < order.size(); ++i) {
    ids.push_back(nodes[order[i]]);
    for (const std::size_t column : order) sorted[i].push_back(distances[order[i]][column]);
  }
  nodes = std::move(ids);
  distances = std::move(sorted);
}

std::string check_nodes(const std::vector<int>& nodes, const std::vector<Cpu>& cpus) {
  NodeSet known;
  for (const int node : nodes) {
    if (node < 0 || node >= kMaxIds) return "nodes: number is out of bounds";
    if (known.contains(node)) return "nodes: " + std::to_string(node) + " is listed twice";
    known.add(node);
  }
  for (const Cpu& cpu : cpus) {
    if (!known.contains(cpu.numa)) {
      return "cpu " + std::to_string(cpu.cpu) + ": its node has no row in distances";
    }
  }
  return {};
}

}  // namespace

Expected<Topology, std::string> Topology::make(std::vector<Cpu> cpus, Distances distances,
                                               std::vector<int> nodes) {
  std::ranges::sort(cpus, {}, &Cpu::cpu);
  if (cpus.empty()) return unexpected(std::string("no CPU"));
  if (auto wrong = check_cpus(cpus); !wrong.empty()) return unexpected(std::move(wrong));
  if (nodes.empty()) nodes = row_nodes(cpus, distances.size());
  if (auto wrong = check_nodes(nodes, cpus); !wrong.empty()) return unexpected(std::move(wrong));
  if (distances.empty()) distances = default_distances(nodes.size());
  if (auto wrong = check_matrix(distances, nodes.size()); !wrong.empty()) {
    return unexpected(std::move(wrong));
  }
  sort_rows(nodes, distances);
  Topology topology;
  topology.cpus_ = std::move(cpus);
  topology.node_ids_ = std::move(nodes);
  topology.distances_ = std::move(distances);
  topology.index();
  return topology;
}

void Topology::index() {
  for (const int node : node_ids_) nodes_.add(node);
  position_.assign(static_cast<std::size_t>(cpus_.back().cpu) + 1, -1);
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    const Cpu& cpu = cpus_[i];
    position_[static_cast<std::size_t>(cpu.cpu)] = static_cast<int>(i);
    all_.add(cpu.cpu);
    if (cpu.isolated) isolated_.add(cpu.cpu);
    if (cpu.nohz_full) nohz_full_.add(cpu.cpu);
    if (!cpu.online) continue;
    online_.add(cpu.cpu);
    by_core_[cpu.core].add(cpu.cpu);
    by_node_[cpu.numa].add(cpu.cpu);
    by_l3_[cpu.l3].add(cpu.cpu);
  }
}

const Cpu* Topology::find(int cpu) const {
  if (cpu < 0 || static_cast<std::size_t>(cpu) >= position_.size()) return nullptr;
  const int at = position_[static_cast<std::size_t>(cpu)];
  return at < 0 ? nullptr : &cpus_[static_cast<std::size_t>(at)];
}

const CpuSet& Topology::siblings(int cpu) const {
  static const CpuSet kNone;
  const Cpu* found = find(cpu);
  return found == nullptr ? kNone : core_cpus(found->core);
}

NodeSet Topology::nodes_of(const CpuSet& cpus) const {
  NodeSet nodes;
  for (const int id : cpus) {
    if (const Cpu* cpu = find(id)) nodes.add(cpu->numa);
  }
  return nodes;
}

int Topology::distance(int from, int to) const {
  const auto row = std::ranges::lower_bound(node_ids_, from);
  const auto column = std::ranges::lower_bound(node_ids_, to);
  if (row == node_ids_.end() || *row != from || column == node_ids_.end() || *column != to) {
    return 0;
  }
  return distances_[static_cast<std::size_t>(row - node_ids_.begin())]
                   [static_cast<std::size_t>(column - node_ids_.begin())];
}

const CpuSet& Topology::lookup(const Groups& groups, int id) {
  static const CpuSet kNone;
  const auto found = groups.find(id);
  return found == groups.end() ? kNone : found->second;
}

}  // namespace ka::policy
