// SPDX-License-Identifier: Apache-2.0
// Memory of the NUMA nodes, by sysfs (Documentation/ABI/stable/sysfs-devices-node). In huge pages
// above policy::kLargestBasePage bytes a page; `sys` is where sysfs is mounted.
#pragma once

#include <cstdint>
#include <filesystem>

#include "policy/facts/memory.hpp"

namespace ka::host {

/// What is free for pages of this size.
policy::NodeBytes free_memory(const std::filesystem::path& sys, std::uint64_t page);
/// Small pages that are free, or would be without the kernel's caches of files.
policy::NodeBytes available_memory(const std::filesystem::path& sys);
/// All that there is of pages of this size.
policy::NodeBytes total_memory(const std::filesystem::path& sys, std::uint64_t page);

}  // namespace ka::host
