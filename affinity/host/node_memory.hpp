// SPDX-License-Identifier: Apache-2.0
// Memory of the NUMA nodes, by sysfs (Documentation/ABI/stable/sysfs-devices-node). In huge pages
// above policy::kLargestBasePage bytes a page; `sys` is where sysfs is mounted.
#pragma once

#include <cstdint>
#include <filesystem>

#include "policy/facts/id_set.hpp"
#include "policy/facts/memory.hpp"

namespace ka::host {

inline constexpr std::uint64_t kKib = 1024;  ///< in bytes

/// The nodes that have memory: the kernel refuses others in cpuset.mems. Empty: not known.
policy::NodeSet memory_nodes(const std::filesystem::path& sys);
/// What is free for pages of this size.
policy::NodeBytes free_memory(const std::filesystem::path& sys, std::uint64_t page);
/// Small pages that are free, or would be without the kernel's caches of files.
policy::NodeBytes available_memory(const std::filesystem::path& sys);
/// All that there is of pages of this size.
policy::NodeBytes total_memory(const std::filesystem::path& sys, std::uint64_t page);

}  // namespace ka::host
