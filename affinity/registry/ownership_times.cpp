// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/ownership_times.hpp"

namespace ka::registry {

using policy::CpuSet;

void OwnershipTimes::record_taken(const CpuSet& cpus, Time now) {
  for (const int cpu : cpus) taken_[cpu] = now;
}

void OwnershipTimes::record_changed(const CpuSet& cpus, Time now) {
  for (const int cpu : cpus) changed_[cpu] = now;
}

std::optional<OwnershipTimes::Time> OwnershipTimes::last_change(int cpu) const {
  const auto found = changed_.find(cpu);
  return found == changed_.end() ? std::nullopt : std::optional(found->second);
}

CpuSet OwnershipTimes::older_than(const CpuSet& cpus, std::chrono::seconds age, Time now) const {
  CpuSet old;
  for (const int cpu : cpus) {
    const auto taken = taken_.find(cpu);
    if (now - (taken == taken_.end() ? start_ : taken->second) > age) old.add(cpu);
  }
  return old;
}

}  // namespace ka::registry
