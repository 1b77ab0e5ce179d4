// SPDX-License-Identifier: Apache-2.0
// Where a process's memory lies, by /proc/<pid>/numa_maps (Documentation/filesystems/proc.rst,
// show_numa_map() in fs/proc/task_mmu.c), and what the nodes have left.
//
// The kernel walks the whole page table for an answer: milliseconds for a small VM, seconds for one
// of hundreds of gigabytes in small pages. Not for a thread that others wait for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/facts/memory.hpp"

namespace ka::host {

/// One mapping with pages in memory.
struct Mapping {
  std::uint64_t start = 0, end = 0;  ///< addresses; numa_maps does not have the end
  std::uint64_t page = 4096;         ///< bytes
  /// Memory of the process (anonymous, memfd, tmpfs, huge pages), not a file that is mapped.
  bool own = false;
  bool shared = false;      ///< others may map it too (virtiofsd, vhost-user back-ends)
  bool bound = false;       ///< under a memory policy that names nodes
  policy::NodeBytes bytes;  ///< by node

  bool operator==(const Mapping&) const = default;
};

/// The mappings of a numa_maps text, by address. kInvalid names the line.
base::Result<std::vector<Mapping>> parse_numa_maps(std::string_view text);

/// What of a VMM's memory may be moved, and where it is.
struct ProcessMemory {
  policy::MemoryFacts facts;
  std::vector<Mapping> movable;  ///< those that `facts.parts` counts
};

/// Reads all of it; kGone when there is no such process (any more). `proc` and `sys` are where
/// those are mounted.
base::Result<ProcessMemory> read_memory(const std::filesystem::path& proc,
                                        const std::filesystem::path& sys, int pid);

}  // namespace ka::host
