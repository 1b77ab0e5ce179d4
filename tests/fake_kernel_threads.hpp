// SPDX-License-Identifier: Apache-2.0
// Masks of kernel threads, which a kernel overwrites where CPUs become isolated.
#pragma once

#include <cerrno>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "affinity/helper/host_masks.hpp"

namespace ka::tests {

class FakeKernelThreads final : public helper::HostMasks {
 public:
  std::string_view kind() const override { return "kernel-thread"; }
  base::Result<std::vector<helper::HostMask>> read() const override {
    std::vector<helper::HostMask> found;
    for (const auto& [name, cpus] : masks) found.push_back({name, name, cpus, {}});
    return found;
  }
  base::Result<void> write(const helper::HostMask& mask,
                           const policy::CpuSet& cpus) const override {
    if (!cpus.intersects(allowed)) return base::fail_errno(EINVAL, mask.name);
    masks[mask.name] = cpus & allowed;
    return {};
  }
  /// As the kernel does.
  void overwrite(const policy::CpuSet& others) {
    allowed = others;
    for (auto& [name, cpus] : masks) cpus = others;
  }

  mutable std::map<std::string, policy::CpuSet> masks;
  policy::CpuSet allowed = policy::CpuSet::range(0, 7);
};

}  // namespace ka::tests
