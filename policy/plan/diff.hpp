// SPDX-License-Identifier: Apache-2.0
// diff(): compares the plan with the kernel's state; the result is the writes that close the gap.
//
// The order is part of the meaning: first the threads that are on CPUs which have come to belong to
// another pod, then every write that only takes CPUs away, then those that move a thread, last
// those that only add. So no thread is let onto CPUs that another one of the same update is still
// to leave, when there is any order in which that can be.
#pragma once

#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::policy::plan {

/// One thread, its current and its planned CPUs.
struct ThreadPlacement {
  ThreadKey key;
  CpuSet wanted;   ///< empty: leave it alone
  CpuSet actual;   ///< as the kernel gave it: inside the cgroup's set
  CpuSet allowed;  ///< all that its cgroup allows; empty: not known
  /// It may use CPUs that are exclusive to another pod, and must leave them before all else.
  bool trespassing = false;
  /// It is to follow its cgroup again: `actual` does not show a mask of ours that the cgroup, or
  /// CPUs that are offline, have cut.
  bool freed = false;
  /// The mask of which `wanted` is what the cgroup allows; empty: `wanted`, or all ones.
  CpuSet whole{};
};

struct Write {
  enum class Kind { kNarrow, kMove, kWiden };

  ThreadKey key;
  Kind kind = Kind::kMove;
  bool trespassing = false;  ///< as in its placement
  CpuSet cpus;               ///< what the kernel must report afterwards
  /// The thread may use all of its cgroup: an all-ones mask is written, so that it follows later
  /// changes of the cgroup also while no daemon runs.
  bool everywhere = false;
  /// What is written instead of `cpus`, of which the cgroup allows no more: kernels from 6.2 on
  /// give the thread the rest when the cgroup gets it. Empty: `cpus`.
  CpuSet whole{};

  const CpuSet& mask() const { return whole.empty() ? cpus : whole; }
  /// The thread gets more when its cgroup does.
  bool follows() const { return everywhere || !whole.empty(); }
  bool operator==(const Write&) const = default;
};

/// What a thread or a cgroup with the CPUs `actual` is to have of `wanted` while it is in doubt who
/// owns the CPUs `doubted`: it gets none of these, and keeps those that it has. Where it is wanted
/// on such CPUs alone, it goes there.
CpuSet without_doubted(const CpuSet& wanted, const CpuSet& actual, const CpuSet& doubted);

/// The urgent part of the placements: each thread keeps those of its CPUs that are planned for it,
/// and gets no others. A thread that would be left without any is moved now only if it is
/// trespassing; otherwise it stays where it is.
std::vector<ThreadPlacement> narrowed(std::vector<ThreadPlacement> placements);

/// The same without moves: each thread keeps those of its CPUs that are planned for it, or all of
/// them if none is. None of the masks written is all ones.
std::vector<ThreadPlacement> shrunk(std::vector<ThreadPlacement> placements);

/// The writes in execution order; stable within a kind.
std::vector<Write> diff(const std::vector<ThreadPlacement>& placements);

}  // namespace ka::policy::plan
