// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/memory_mover.hpp"

#include <numa.h>
#include <numaif.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ka::host {

using base::Result;

MemoryMover::MemoryMover(const policy::ProcessId& process, std::vector<Mapping> mappings,
                         std::vector<policy::plan::MemoryMove> moves)
    : pid_(process.pid), mappings_(std::move(mappings)), moves_(std::move(moves)) {}

Result<void> MemoryMover::step(std::uint64_t bytes) {
  if (done()) return {};
  const Mapping& mapping = mappings_[at_];
  std::vector<void*> pages = next(bytes);
  auto batch = misplaced(pages, mapping.page);
  if (!batch) return unexpected(std::move(batch.error()));
  return batch->pages.empty() ? Result<void>{} : move(*batch, mapping);
}

/// The addresses of the next pages, all of one mapping.
std::vector<void*> MemoryMover::next(std::uint64_t bytes) {
  const Mapping& mapping = mappings_[at_];
  const std::uint64_t left = mapping.end - mapping.start - offset_;
  const std::uint64_t size = std::min(std::max(bytes, mapping.page), left);
  std::vector<void*> pages;
  pages.reserve(size / mapping.page);
  for (std::uint64_t in = 0; in < size; in += mapping.page) {
    // An address in another process: a number to us, and a pointer to the system call.
    pages.push_back(reinterpret_cast<void*>(mapping.start + offset_ + in));  // NOLINT
  }
  offset_ += pages.size() * mapping.page;
  if (mapping.start + offset_ >= mapping.end) {
    ++at_;
    offset_ = 0;
  }
  return pages;
}

/// For each page the node that it is on; negative where it is not in memory.
Result<std::vector<int>> MemoryMover::nodes_of(const std::vector<void*>& pages) const {
  std::vector<int> nodes(pages.size(), -ENOENT);
  auto addresses = pages;
  if (::numa_move_pages(pid_, pages.size(), addresses.data(), nullptr, nodes.data(), 0) < 0) {
    return base::fail_errno(errno, "move_pages");
  }
  return nodes;
}

policy::plan::MemoryMove* MemoryMover::move_for(std::uint64_t page, int from) {
  const auto found = std::ranges::find_if(moves_, [&](const policy::plan::MemoryMove& move) {
    return move.page == page && move.from == from && move.bytes >= page;
  });
  return found == moves_.end() ? nullptr : &*found;
}

/// Which of these pages are to move and where to; each counts against its move.
Result<MemoryMover::Batch> MemoryMover::misplaced(const std::vector<void*>& pages,
                                                  std::uint64_t page) {
  const auto nodes = nodes_of(pages);
  if (!nodes) return unexpected(nodes.error());
  Batch batch;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if ((*nodes)[i] < 0) continue;
    policy::plan::MemoryMove* move = move_for(page, (*nodes)[i]);
    if (move == nullptr) continue;
    move->bytes -= page;
    batch.pages.push_back(pages[i]);
    batch.nodes.push_back(move->to);
  }
  std::erase_if(moves_,
                [](const policy::plan::MemoryMove& move) { return move.bytes < move.page; });
  return batch;
}

/// The result is read again: of a transparent huge page the kernel moves the whole with its
/// first part, and calls the others busy. Memory that others map too moves only with MOVE_ALL.
Result<void> MemoryMover::move(const Batch& batch, const Mapping& mapping) {
  std::vector<int> status(batch.pages.size(), 0);
  auto pages = batch.pages;
  const int flags = mapping.shared ? MPOL_MF_MOVE_ALL : MPOL_MF_MOVE;
  const int done =
      ::numa_move_pages(pid_, pages.size(), pages.data(), batch.nodes.data(), status.data(), flags);
  if (done < 0 && (errno == ESRCH || errno == EPERM || errno == EACCES)) {
    return base::fail_errno(errno, "move_pages");
  }
  const auto now = nodes_of(batch.pages);
  if (!now) return unexpected(now.error());
  for (std::size_t i = 0; i < now->size(); ++i) {
    ((*now)[i] == batch.nodes[i] ? moved_ : failed_) += mapping.page;
  }
  return {};
}

}  // namespace ka::host
