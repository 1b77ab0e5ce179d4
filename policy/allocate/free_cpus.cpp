// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/free_cpus.hpp"

#include <algorithm>
#include <compare>

namespace ka::policy::allocate {

FreeCpus::FreeCpus(const Machine& machine, const CpuSet& cpus)
    : machine_(&machine), cpus_(cpus & machine.cpus()) {
  std::size_t all = 0;
  for (std::size_t i = 0; i < kCpuLevels; ++i) {
    starts_[i] = all;
    all += machine.groups(static_cast<CpuLevel>(i)).size();
  }
  counts_.resize(all);
  groups_.resize(all);
  for (const int cpu : cpus_) add(cpu);
}

void FreeCpus::add(int cpu) {
  for (std::size_t i = 0; i < kCpuLevels; ++i) {
    const int group = machine_->group_of(static_cast<CpuLevel>(i), cpu);
    std::uint16_t& free = counts_[starts_[i] + static_cast<std::size_t>(group)];
    if (free++ == 0) groups_[starts_[i] + used_[i]++] = static_cast<std::uint16_t>(group);
  }
}

void FreeCpus::take(const CpuSet& cpus) {
  const CpuSet taken = cpus & cpus_;
  cpus_ -= taken;
  for (const int cpu : taken) {
    for (std::size_t i = 0; i < kCpuLevels; ++i) {
      const int group = machine_->group_of(static_cast<CpuLevel>(i), cpu);
      --counts_[starts_[i] + static_cast<std::size_t>(group)];
    }
  }
}

std::span<const std::uint16_t> FreeCpus::groups(CpuLevel level) const {
  const auto i = static_cast<std::size_t>(level);
  return std::span(groups_).subspan(starts_[i], used_[i]);
}

std::vector<int> FreeCpus::order(CpuLevel level) const {
  if (const auto parent = machine_->parent(level)) return nested(*parent, level);
  return sorted(level, [](int) { return 0; });
}

std::vector<int> FreeCpus::cpus_by_number() const {
  return nested(CpuLevel::kSocket, CpuLevel::kCpu);
}

std::vector<int> FreeCpus::whole_groups(CpuLevel level) const {
  if (!any_whole(level)) return {};
  std::vector<int> groups = order(level);
  std::erase_if(groups, [&](int group) { return !whole(level, group); });
  return groups;
}

bool FreeCpus::any_whole(CpuLevel level) const {
  return std::ranges::any_of(groups(level), [&](int group) { return whole(level, group); });
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
  entries.reserve(groups(level).size());
  for (const int group : groups(level)) {
    const int free = count(level, group);
    if (free > 0) entries.push_back({place_of(group), free, group});
  }
  std::ranges::sort(entries);
  std::vector<int> ordered(entries.size());
  std::ranges::transform(entries, ordered.begin(), &Entry::group);
  return ordered;
}

}  // namespace ka::policy::allocate
