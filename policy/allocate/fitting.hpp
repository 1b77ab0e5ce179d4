// SPDX-License-Identifier: Apache-2.0
// The best place for a container: on the fewest NUMA nodes, then sockets, then L3 caches, then with
// the fewest broken cores. Found exactly, not by taking one group after the other.
#pragma once

#include <compare>
#include <optional>

#include "policy/allocate/machine.hpp"

namespace ka::policy::allocate {

/// How far CPUs are spread: the less, the better.
struct Spread {
  int nodes = 0;
  int sockets = 0;
  int l3s = 0;
  int broken_cores = 0;  ///< cores that were free as a whole and are taken in part

  auto operator<=>(const Spread&) const = default;
};

/// The cost of taking `cpus` out of `free`.
Spread spread_of(const Machine& machine, const CpuSet& free, const CpuSet& cpus);

/// Groups of one level that overlap those of another without lying in them are tried in every
/// combination up to so many. None of the recorded machines has any. Where there are more, the
/// answer is no worse than the packed one, with hints or without.
inline constexpr std::size_t kExactOverlaps = 6;

struct FittingProblem {
  CpuSet free;
  CpuSet beside;  ///< CPUs that the container holds already: their groups cost nothing
  int cpus = 0;
  bool whole_cores = false;  ///< no core may be taken in part
};

/// The `cpus` free CPUs with the least spread; of those, the ones that share the fewest cores with
/// others and leave the least room in the nodes and L3 caches that they use. Absent where there are
/// not enough.
std::optional<CpuSet> best_fit(const Machine& machine, const FittingProblem& problem);

}  // namespace ka::policy::allocate
