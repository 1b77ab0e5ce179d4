// SPDX-License-Identifier: Apache-2.0
// Where a VM's memory lies according to the kernel: a plain value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::policy {

using NodeBytes = std::map<int, std::uint64_t>;  ///< bytes by NUMA node

/// The kernel's pages have 4 to 64 KiB (arm64, ppc64); what is larger was asked for as huge.
inline constexpr std::uint64_t kLargestBasePage = std::uint64_t{64} * 1024;

/// Memory in pages of one size.
struct MemoryPart {
  std::uint64_t page = 0;  ///< bytes a page; huge pages that are transparent count as small ones
  NodeBytes placed;        ///< of the VM: what may be moved
  NodeBytes free;          ///< of the nodes: what could take such pages

  bool operator==(const MemoryPart&) const = default;
};

struct MemoryFacts {
  std::vector<MemoryPart> parts;  ///< by page size, ascending
  /// What the VMM itself bound to nodes (a memory backend with host-nodes): it is left there.
  NodeBytes bound;
  NodeSet allowed;     ///< nodes that the VMM may allocate from (its cgroup's cpuset.mems)
  std::string device;  ///< a passed-through device, which pins all memory; empty: none

  bool operator==(const MemoryFacts&) const = default;
};

/// All of the VM's memory, also what is bound.
NodeBytes bytes_by_node(const MemoryFacts& facts);

}  // namespace ka::policy
