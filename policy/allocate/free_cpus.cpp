#include "policy/allocate/free_cpus.hpp"

#include <algorithm>
#include <numeric>

namespace ka::policy {

FreeCpus::FreeCpus(const Machine& machine, const CpuSet& cpus)
    : machine_(&machine), cpus_(cpus & machine.cpus()) {
  for (std::size_t i = 0; i < kCpuLevels; ++i) {
    const auto level = static_cast<CpuLevel>(i);
    counts_[i].assign(machine.groups(level).size(), 0);
    for (const int cpu : cpus_)
      ++counts_[i][static_cast<std::size_t>(machine.group_of(level, cpu))];
  }
}

void FreeCpus::take(const CpuSet& cpus) {
  const CpuSet taken = cpus & cpus_;
  cpus_ -= taken;
  for (std::size_t i = 0; i < kCpuLevels; ++i) {
    const auto level = static_cast<CpuLevel>(i);
    for (const int cpu : taken) {
      --counts_[i][static_cast<std::size_t>(machine_->group_of(level, cpu))];
    }
  }
}

std::vector<int> FreeCpus::order(CpuLevel level) const {
  if (const auto parent = machine_->parent(level)) return nested(*parent, order(*parent), level);
  std::vector<int> groups(machine_->groups(level).size());
  std::iota(groups.begin(), groups.end(), 0);
  std::erase_if(groups, [&](int group) { return count(level, group) == 0; });
  sort(level, groups);
  return groups;
}

std::vector<int> FreeCpus::cpus_by_number() const {
  return nested(CpuLevel::kSocket, order(CpuLevel::kSocket), CpuLevel::kCpu);
}

std::vector<int> FreeCpus::whole_groups(CpuLevel level) const {
  std::vector<int> groups = order(level);
  std::erase_if(groups, [&](int group) { return !whole(level, group); });
  return groups;
}

std::vector<int> FreeCpus::nested(CpuLevel outer, const std::vector<int>& parents,
                                  CpuLevel inner) const {
  std::vector<int> groups;
  std::vector<bool> seen(machine_->groups(inner).size());
  for (const int parent : parents) {
    std::vector<int> children = with_free(outer, parent, inner);
    sort(inner, children);
    for (const int child : children) {
      if (!seen[static_cast<std::size_t>(child)]) groups.push_back(child);
      seen[static_cast<std::size_t>(child)] = true;
    }
  }
  return groups;
}

std::vector<int> FreeCpus::with_free(CpuLevel outer, int number, CpuLevel inner) const {
  std::vector<int> found;
  int last = -1;
  for (const int cpu : in(outer, number)) {
    const int group = machine_->group_of(inner, cpu);
    if (group != last) found.push_back(group);
    last = group;
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

void FreeCpus::sort(CpuLevel level, std::vector<int>& groups) const {
  std::ranges::sort(groups, {}, [&](int group) { return std::pair(count(level, group), group); });
}

}  // namespace ka::policy
