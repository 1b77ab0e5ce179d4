// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/free_cpus.hpp"

#include <algorithm>
#include <compare>

namespace ka::policy::allocate {

FreeCpus::FreeCpus(const Machine& machine, const CpuSet& cpus)
    : machine_(&machine), cpus_(cpus & machine.cpus()) {
  for (std::size_t i = 0; i < kCpuLevels; ++i) {
    counts_[i].assign(machine.groups(static_cast<CpuLevel>(i)).size(), 0);
  }
  count(cpus_, 1);
}

void FreeCpus::take(const CpuSet& cpus) {
  const CpuSet taken = cpus & cpus_;
  cpus_ -= taken;
  count(taken, -1);
}

void FreeCpus::count(const CpuSet& cpus, int each) {
  for (const int cpu : cpus) {
    for (std::size_t i = 0; i < kCpuLevels; ++i) {
      const int group = machine_->group_of(static_cast<CpuLevel>(i), cpu);
      counts_[i][static_cast<std::size_t>(group)] += each;
    }
  }
}

std::vector<int> FreeCpus::order(CpuLevel level) const {
  if (const auto parent = machine_->parent(level)) return nested(*parent, level);
  return sorted(level, [](int) { return 0; });
}

std::vector<int> FreeCpus::cpus_by_number() const {
  return nested(CpuLevel::kSocket, CpuLevel::kCpu);
}

std::vector<int> FreeCpus::whole_groups(CpuLevel level) const {
  std::vector<int> groups = order(level);
  std::erase_if(groups, [&](int group) { return !whole(level, group); });
  return groups;
}

std::vector<int> FreeCpus::nested(CpuLevel outer, CpuLevel inner) const {
  std::vector<int> places(machine_->groups(outer).size());
  int next = 0;
  for (const int parent : order(outer)) places[static_cast<std::size_t>(parent)] = next++;
  return sorted(inner, [&](int group) {
    const int parent = machine_->around(inner, group, outer);
    if (parent >= 0) return places[static_cast<std::size_t>(parent)];
    int first = next;
    for (const int cpu : in(inner, group)) {
      first = std::min(first, places[static_cast<std::size_t>(machine_->group_of(outer, cpu))]);
    }
    return first;
  });
}

/// By the place of the parent, then by free CPUs, then by number.
template <typename Place>
std::vector<int> FreeCpus::sorted(CpuLevel level, const Place& place_of) const {
  struct Entry {
    int place, free, group;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> entries;
  const int all = static_cast<int>(machine_->groups(level).size());
  for (int group = 0; group < all; ++group) {
    const int free = count(level, group);
    if (free > 0) entries.push_back({place_of(group), free, group});
  }
  std::ranges::sort(entries);
  std::vector<int> groups(entries.size());
  std::ranges::transform(entries, groups.begin(), &Entry::group);
  return groups;
}

}  // namespace ka::policy::allocate
