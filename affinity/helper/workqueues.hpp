// SPDX-License-Identifier: Apache-2.0
// Where workers of unbound workqueues run: /sys/devices/virtual/workqueue/cpumask
// (Documentation/core-api/workqueue.rst).
#pragma once

#include "affinity/helper/host_masks.hpp"

namespace ka::helper {

class Workqueues final : public HostMasks {
 public:
  explicit Workqueues(const Roots& roots)
      : file_(roots.sys / "devices/virtual/workqueue/cpumask") {}

  std::string_view kind() const override { return "workqueue"; }
  base::Result<std::vector<HostMask>> read() const override;
  base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const override;

 private:
  std::filesystem::path file_;
};

}  // namespace ka::helper
