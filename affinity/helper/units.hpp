// SPDX-License-Identifier: Apache-2.0
// The units that systemd runs beside kubelet's pods (systemd.special(7)), by their AllowedCPUs;
// cgroup v2.
#pragma once

#include "affinity/helper/host_masks.hpp"

namespace ka::helper {

class Units final : public HostMasks {
 public:
  Units(const Roots& roots, const base::Clock& clock) : roots_(roots), clock_(clock) {}

  std::string_view kind() const override { return "unit"; }
  base::Result<std::vector<HostMask>> read() const override;
  base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const override;

 private:
  base::Result<void> allow(const HostMask& mask, const policy::CpuSet& cpus) const;

  Roots roots_;
  const base::Clock& clock_;
};

}  // namespace ka::helper
