// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/ownership.hpp"

namespace ka::registry {

using policy::CpuSet;

void Ownership::record(const CpuSet& cpus, Time now) {
  for (const int cpu : cpus) since_[cpu] = now;
}

CpuSet Ownership::older_than(const CpuSet& cpus, std::chrono::seconds age, Time now) const {
  CpuSet old;
  for (const int cpu : cpus) {
    const auto since = since_.find(cpu);
    if (now - (since == since_.end() ? start_ : since->second) > age) old.add(cpu);
  }
  return old;
}

}  // namespace ka::registry
