// SPDX-License-Identifier: Apache-2.0
// Moves the memory of a process to other nodes, a step at a time (move_pages(2)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "affinity/host/memory.hpp"
#include "base/result.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/plan/memory.hpp"

namespace ka::host {

class MemoryMover {
 public:
  /// `mappings` by address; `moves` assigns parts to nodes.
  MemoryMover(const policy::ProcessId& process, std::vector<Mapping> mappings,
              std::vector<policy::plan::MemoryMove> moves);

  bool done() const { return at_ == mappings_.size() || moves_.empty(); }

  /// Goes on by at most `bytes` of address space (one page at least) and moves what of it is in the
  /// wrong place. A vCPU that touches a moving page waits until the kernel has copied what it
  /// copies at once (512 small pages at most); others do not wait.
  ///
  /// kGone when the process is; kPermission when it may not be touched. Pages that cannot be moved
  /// are left. The kernel knows the process by its
  /// number alone: the caller checks its identity before and after (I9).
  base::Result<void> step(std::uint64_t bytes);

  std::uint64_t moved() const { return moved_; }    ///< bytes that are where they should be now
  std::uint64_t failed() const { return failed_; }  ///< bytes that were to move and did not

 private:
  struct Batch {
    std::vector<void*> pages;
    std::vector<int> nodes;
  };

  std::vector<void*> next(std::uint64_t bytes);
  policy::plan::MemoryMove* move_for(std::uint64_t page, int from);
  base::Result<Batch> misplaced(const std::vector<void*>& pages, std::uint64_t page);
  base::Result<void> move(const Batch& batch, const Mapping& mapping);
  base::Result<std::vector<int>> nodes_of(const std::vector<void*>& pages) const;

  int pid_;
  std::vector<Mapping> mappings_;
  std::vector<policy::plan::MemoryMove> moves_;
  std::size_t at_ = 0;        ///< the current mapping
  std::uint64_t offset_ = 0;  ///< in it
  std::uint64_t moved_ = 0, failed_ = 0;
};

}  // namespace ka::host
