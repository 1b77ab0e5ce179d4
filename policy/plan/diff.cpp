// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/diff.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::plan {
namespace {

Write::Kind kind_of(const CpuSet& from, const CpuSet& to) {
  if (to.subset_of(from)) return Write::Kind::kNarrow;
  return from.subset_of(to) ? Write::Kind::kWiden : Write::Kind::kMove;
}

void shrink(ThreadPlacement& thread) {
  const CpuSet common = thread.wanted & thread.actual;
  thread.wanted = common.empty() ? thread.actual : common;
}

/// Where only a part of what its cgroup allows of it is wanted, it is not written.
CpuSet whole_mask(const ThreadPlacement& thread) {
  const bool is_cut = (thread.whole & thread.allowed) == thread.wanted;
  return is_cut && thread.whole != thread.wanted ? thread.whole : CpuSet{};
}

}  // namespace

CpuSet without_doubted(const CpuSet& wanted, const CpuSet& actual, const CpuSet& doubted) {
  if (!wanted.intersects(doubted)) return wanted;
  CpuSet kept = wanted - (doubted - actual);
  return kept.empty() ? wanted : kept;
}

std::vector<ThreadPlacement> narrowed(std::vector<ThreadPlacement> placements) {
  for (ThreadPlacement& thread : placements) {
    const bool must_move = thread.trespassing && !thread.wanted.intersects(thread.actual);
    if (!must_move) shrink(thread);
  }
  return placements;
}

std::vector<ThreadPlacement> shrunk(std::vector<ThreadPlacement> placements) {
  for (ThreadPlacement& thread : placements) {
    shrink(thread);
    thread.allowed = {};  // an all-ones mask would grow with the cgroup
  }
  return placements;
}

std::vector<Write> diff(const std::vector<ThreadPlacement>& placements) {
  std::vector<Write> writes;
  for (const ThreadPlacement& thread : placements) {
    if (thread.wanted.empty()) continue;
    const CpuSet whole = whole_mask(thread);
    const bool everywhere =
        whole.empty() && !thread.allowed.empty() && thread.wanted == thread.allowed;
    Write write{thread.key,         kind_of(thread.actual, thread.wanted),
                thread.trespassing, thread.wanted,
                everywhere,         whole};
    if (thread.wanted == thread.actual && !(thread.freed && write.follows())) continue;
    writes.push_back(std::move(write));
  }
  std::ranges::stable_sort(
      writes, {}, [](const Write& write) { return std::pair(!write.trespassing, write.kind); });
  return writes;
}

}  // namespace ka::policy::plan
