// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/machine.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace ka::policy::allocate {
namespace {

int id_of(const Cpu& cpu, CpuLevel level) {
  switch (level) {
    case CpuLevel::kSocket:
      return cpu.socket;
    case CpuLevel::kNode:
      return cpu.numa;
    case CpuLevel::kL3:
      return cpu.l3;
    case CpuLevel::kCore:
      return cpu.core;
    case CpuLevel::kCpu:
      return cpu.cpu;
  }
  return cpu.cpu;
}

/// In the order in which they are numbered.
std::vector<CpuGroup> groups_at(const Topology& topology, CpuLevel level) {
  std::map<int, CpuSet> by_id;
  for (const Cpu& cpu : topology.cpus()) {
    if (cpu.online) by_id[id_of(cpu, level)].add(cpu.cpu);
  }
  std::vector<CpuGroup> groups;
  for (auto& [id, cpus] : by_id) {
    const int size = cpus.size();
    groups.push_back({id, std::move(cpus), size});
  }
  if (level == CpuLevel::kCore) {
    std::ranges::sort(groups, {}, [](const CpuGroup& core) { return core.cpus.first(); });
  }
  return groups;
}

}  // namespace

Machine::Machine(Topology topology) : topology_(std::move(topology)) {
  const auto numbers = static_cast<std::size_t>(topology_.online().last()) + 1;
  for (std::size_t level = 0; level < kCpuLevels; ++level) {
    Layer& layer = layers_[level];
    layer.group_of.assign(numbers, -1);
    layer.groups = groups_at(topology_, static_cast<CpuLevel>(level));
    for (std::size_t number = 0; number < layer.groups.size(); ++number) {
      for (const int cpu : layer.groups[number].cpus) {
        layer.group_of[static_cast<std::size_t>(cpu)] = static_cast<int>(number);
      }
    }
  }
  for (std::size_t level = 0; level < kCpuLevels; ++level) {
    find_around(static_cast<CpuLevel>(level));
  }
  find_cores();
  find_near();
  find_nesting();
}

void Machine::find_around(CpuLevel inner) {
  Layer& layer = layers_[static_cast<std::size_t>(inner)];
  for (std::size_t outer = 0; outer < kCpuLevels; ++outer) {
    for (const CpuGroup& group : layer.groups) {
      const auto lies_in = [&](int cpu) { return group_of(static_cast<CpuLevel>(outer), cpu); };
      const int first = lies_in(group.cpus.first());
      const bool inside =
          std::ranges::all_of(group.cpus, [&](int cpu) { return lies_in(cpu) == first; });
      layer.around[outer].push_back(inside ? first : -1);
    }
  }
}

void Machine::find_cores() {
  for (const CpuGroup& l3 : groups(CpuLevel::kL3)) {
    std::vector<int>& cores = cores_of_l3_.emplace_back();
    for (const int cpu : l3.cpus) cores.push_back(group_of(CpuLevel::kCore, cpu));
    std::ranges::sort(cores);
    const auto repeated = std::ranges::unique(cores);
    cores.erase(repeated.begin(), repeated.end());
  }
}

void Machine::find_near() {
  const std::vector<CpuGroup>& nodes = groups(CpuLevel::kNode);
  std::vector<int> numbers(nodes.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const int seed : numbers) {
    const auto distance = [&](int number) {
      return number == seed ? -1
                            : topology_.distance(nodes[static_cast<std::size_t>(seed)].id,
                                                 nodes[static_cast<std::size_t>(number)].id);
    };
    std::ranges::stable_sort(nodes_near_.emplace_back(numbers), {}, distance);
  }
}

void Machine::find_nesting() {
  using enum CpuLevel;
  static constexpr Nesting kOrders[] = {{kSocket, kNode, kL3, kCore}, {kNode, kSocket, kL3, kCore},
                                        {kSocket, kL3, kNode, kCore}, {kNode, kL3, kSocket, kCore},
                                        {kL3, kSocket, kNode, kCore}, {kL3, kNode, kSocket, kCore}};
  const auto cuts = [&](const Nesting& nesting) { return cuts_of(nesting); };
  nesting_ = *std::ranges::min_element(kOrders, {}, cuts);
  nested_cpus_ = cpus().ids();
  std::ranges::sort(nested_cpus_, {}, [&](int cpu) {
    std::array<int, 5> key{};
    std::ranges::transform(nesting_, key.begin(),
                           [&](CpuLevel level) { return group_of(level, cpu); });
    key.back() = cpu;
    return key;
  });
}

/// How many groups of each level are cut in parts by the levels before it.
std::size_t Machine::cuts_of(const Nesting& nesting) const {
  std::size_t count = 0;
  for (std::size_t inner = 1; inner < 3; ++inner) {
    for (std::size_t group = 0; group < groups(nesting[inner]).size(); ++group) {
      if (is_cut(nesting, inner, static_cast<int>(group))) ++count;
    }
  }
  return count;
}

bool Machine::is_cut(const Nesting& nesting, std::size_t depth, int group) const {
  const auto lies_in_several = [&](CpuLevel outer) {
    return around(nesting[depth], group, outer) < 0;
  };
  return std::any_of(nesting.begin(), nesting.begin() + static_cast<std::ptrdiff_t>(depth),
                     lies_in_several);
}

bool Machine::nodes_outermost() const {
  return groups(CpuLevel::kSocket).size() >= groups(CpuLevel::kNode).size();
}

std::optional<CpuLevel> Machine::parent(CpuLevel level) const {
  switch (level) {
    case CpuLevel::kSocket:
      return nodes_outermost() ? std::optional(CpuLevel::kNode) : std::nullopt;
    case CpuLevel::kNode:
      return nodes_outermost() ? std::nullopt : std::optional(CpuLevel::kSocket);
    case CpuLevel::kL3:
      return CpuLevel::kNode;
    case CpuLevel::kCore:
      return nodes_outermost() ? CpuLevel::kSocket : CpuLevel::kNode;
    case CpuLevel::kCpu:
      return CpuLevel::kCore;
  }
  return std::nullopt;
}

int Machine::average(CpuLevel level) const {
  return cpus().empty() ? 1 : cpus().size() / static_cast<int>(groups(level).size());
}

bool Machine::uniform_cores() const {
  const auto& cores = groups(CpuLevel::kCore);
  return std::ranges::all_of(cores,
                             [&](const CpuGroup& core) { return core.size == cores.front().size; });
}

bool Machine::whole_cores(const CpuSet& cpus) const { return with_siblings(cpus) == cpus; }

CpuSet Machine::whole_cores_in(const CpuSet& cpus) const {
  return cpus - with_siblings(this->cpus() - cpus);
}

CpuSet Machine::with_siblings(const CpuSet& cpus) const { return groups_of(CpuLevel::kCore, cpus); }

CpuSet Machine::cpus_of_nodes(const NodeSet& nodes) const {
  CpuSet found;
  for (const int node : nodes) found |= topology_.node_cpus(node);
  return found;
}

CpuSet Machine::cpus_of_sockets_of(const NodeSet& nodes) const {
  return groups_of(CpuLevel::kSocket, cpus_of_nodes(nodes));
}

CpuSet Machine::groups_of(CpuLevel level, const CpuSet& cpus) const {
  CpuSet found;
  for (const int cpu : cpus) {
    if (!found.contains(cpu)) found |= group(level, group_of(level, cpu)).cpus;
  }
  return found;
}

}  // namespace ka::policy::allocate
