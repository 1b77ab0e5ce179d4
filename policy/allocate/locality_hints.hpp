// SPDX-License-Identifier: Apache-2.0
// Topology hints of what a container needs besides CPUs: memory, huge pages and devices.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/allocate/hints.hpp"
#include "policy/allocate/machine.hpp"
#include "policy/facts/memory.hpp"

namespace ka::policy::allocate {

/// Memory of the machine's nodes in pages of one size, in bytes.
struct NodeMemory {
  NodeBytes free;
  NodeBytes total;

  bool operator==(const NodeMemory&) const = default;
};

/// Sets of nodes that have `bytes` free, as sets_with_room() orders them; preferred are those no
/// larger than an empty machine would need. As kubelet's memory manager, except that it counts what
/// it gave away, and not what is free.
std::vector<Hint> memory_hints(const Machine& machine, const NodeMemory& memory,
                               std::uint64_t bytes);

/// Sets of nodes that have those of a device; preferred is the smallest (kubelet's
/// generateDeviceTopologyHints, for a device that is chosen already). Empty: the machine has none
/// of its nodes.
std::vector<Hint> device_hints(const Machine& machine, const NodeSet& device);

}  // namespace ka::policy::allocate
