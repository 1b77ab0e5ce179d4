// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/locality_hints.hpp"

#include <algorithm>
#include <limits>

#include "policy/allocate/node_sets.hpp"

namespace ka::policy::allocate {
namespace {

/// No machine has more memory than this for each of its nodes.
constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / kMaxIds;

std::int64_t bounded(std::uint64_t bytes) {
  return static_cast<std::int64_t>(std::min(bytes, kMostBytes));
}

std::int64_t bytes_of(const NodeBytes& bytes, int node) {
  const auto found = bytes.find(node);
  return found == bytes.end() ? 0 : bounded(found->second);
}

std::vector<Hint> hints_of(std::vector<NodeSet> sets, int preferred) {
  std::vector<Hint> hints;
  for (NodeSet& nodes : sets) {
    const bool is_preferred = nodes.size() == preferred;
    hints.push_back({std::move(nodes), is_preferred});
  }
  return hints;
}

}  // namespace

std::vector<Hint> memory_hints(const Machine& machine, const NodeMemory& memory,
                               std::uint64_t bytes) {
  std::vector<NodeRoom> rooms;
  std::vector<std::int64_t> sizes;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) {
    rooms.push_back({.node = node.id, .free = bytes_of(memory.free, node.id)});
    sizes.push_back(bytes_of(memory.total, node.id));
  }
  const std::int64_t needed = bounded(bytes);
  return hints_of(sets_with_room(machine, std::move(rooms), needed),
                  least_groups(std::move(sizes), needed));
}

std::vector<Hint> device_hints(const Machine& machine, const NodeSet& device) {
  std::vector<NodeRoom> rooms;
  NodeSet there;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) {
    rooms.push_back({.node = node.id, .required = device.contains(node.id)});
    if (rooms.back().required) there.add(node.id);
  }
  if (there.empty() || there != device) return {};
  return hints_of(sets_with_room(machine, std::move(rooms), 0), there.size());
}

}  // namespace ka::policy::allocate
