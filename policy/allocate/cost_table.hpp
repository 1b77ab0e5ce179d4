// SPDX-License-Identifier: Apache-2.0
// The cost of taking CPUs from a group, for every number that it can give.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "policy/allocate/machine.hpp"

namespace ka::policy::allocate {

/// Lexicographic costs in fields of 16 bits, so that to add and to compare are single operations.
struct Cost {
  std::uint64_t spread = 0;  ///< nodes, sockets, L3 caches, broken cores
  std::uint64_t rest = 0;    ///< cores left in part, cores in part, room in the nodes, in the L3s

  auto operator<=>(const Cost&) const = default;
  friend Cost operator+(Cost a, Cost b) { return {a.spread + b.spread, a.rest + b.rest}; }
  int nodes() const { return static_cast<int>(spread >> 48); }
};

/// For using a group in which this many CPUs are free.
Cost charge_for(CpuLevel level, int room);
/// For leaving some CPUs of a core that was free as a whole.
Cost charge_for_breaking();
/// For leaving some free CPUs of a core that is in use.
Cost charge_for_leaving();
/// For sharing a core with others.
Cost charge_for_sharing();

struct CostEntry {
  int cpus = 0;
  Cost cost;
};

/// The numbers of CPUs that can be taken, ascending, each at its least cost.
using CostTable = std::vector<CostEntry>;

/// The least cost of taking CPUs from both sides together, up to `most` of them.
CostTable sum_of(const CostTable& left, const CostTable& right, int most);

/// Absent where this many CPUs cannot be taken.
const Cost* find_cost(const CostTable& table, int cpus);

}  // namespace ka::policy::allocate
