// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/owners.hpp"

#include <utility>

namespace ka::policy::ledger {
namespace {

void set(CpuSet& cpus, int cpu, bool member) {
  if (member) {
    cpus.add(cpu);
  } else {
    cpus.remove(cpu);
  }
}

}  // namespace

Owners::Moved Owners::give(const std::string& owner, const CpuSet& cpus) {
  const CpuSet before = of(owner);
  if (before == cpus) return {};
  Moved moved{true, cpus - before};
  for (const int cpu : before - cpus) count(cpu, -1);
  for (const int cpu : moved.taken) count(cpu, +1);
  if (cpus.empty()) {
    cpus_.erase(owner);
  } else {
    cpus_[owner] = cpus;
  }
  return moved;
}

const CpuSet& Owners::of(const std::string& owner) const {
  static const CpuSet kNone;
  const auto found = cpus_.find(owner);
  return found == cpus_.end() ? kNone : found->second;
}

CpuSet Owners::of_others(const std::string& owner, const CpuSet& whole) const {
  CpuSet others;
  for (const auto& [other, cpus] : cpus_) {
    if (other != owner && !whole.subset_of(cpus)) others |= cpus;
  }
  return others;
}

void Owners::count(int cpu, int change) {
  const auto at = static_cast<std::size_t>(cpu);
  if (owners_.size() <= at) owners_.resize(at + 1);
  owners_[at] += change;
  set(all_, cpu, owners_[at] > 0);
  set(contested_, cpu, owners_[at] > 1);
}

}  // namespace ka::policy::ledger
