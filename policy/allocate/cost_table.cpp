// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/cost_table.hpp"

#include <algorithm>

namespace ka::policy::allocate {
namespace {

constexpr Cost kImpossible{~std::uint64_t{0}, 0};

constexpr std::uint64_t fields(int a, int b, int c, int d) {
  std::uint64_t all = 0;
  for (const int field : {a, b, c, d}) all = all << 16 | static_cast<std::uint64_t>(field);
  return all;
}

}  // namespace

Cost charge_for(CpuLevel level, int room) {
  if (level == CpuLevel::kNode) return {fields(1, 0, 0, 0), fields(0, 0, room, 0)};
  if (level == CpuLevel::kSocket) return {fields(0, 1, 0, 0), 0};
  return {fields(0, 0, 1, 0), fields(0, 0, 0, room)};
}

Cost charge_for_breaking() { return {fields(0, 0, 0, 1), fields(1, 1, 0, 0)}; }
Cost charge_for_leaving() { return {0, fields(1, 1, 0, 0)}; }
Cost charge_for_sharing() { return {0, fields(0, 1, 0, 0)}; }

CostTable sum_of(const CostTable& left, const CostTable& right, int most) {
  if (left.empty() || right.empty()) return {};
  const int first = left.front().cpus + right.front().cpus;
  const int last = std::min(left.back().cpus + right.back().cpus, most);
  CostTable sum(static_cast<std::size_t>(std::max(0, last - first + 1)));
  for (int cpus = first; CostEntry & entry : sum) entry = {cpus++, kImpossible};
  for (const CostEntry& ours : left) {
    for (const CostEntry& theirs : right) {
      const int cpus = ours.cpus + theirs.cpus;
      if (cpus > last) break;
      Cost& least = sum[static_cast<std::size_t>(cpus - first)].cost;
      least = std::min(least, ours.cost + theirs.cost);
    }
  }
  std::erase_if(sum, [](const CostEntry& entry) { return entry.cost == kImpossible; });
  return sum;
}

const Cost* find_cost(const CostTable& table, int cpus) {
  const auto found = std::ranges::lower_bound(table, cpus, {}, &CostEntry::cpus);
  return found == table.end() || found->cpus != cpus ? nullptr : &found->cost;
}

}  // namespace ka::policy::allocate
