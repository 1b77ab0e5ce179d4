// SPDX-License-Identifier: Apache-2.0
// Interrupts of the host: the CPUs that each may be sent to, and where new ones go.
#pragma once

#include "affinity/helper/host_masks.hpp"

namespace ka::helper {

inline constexpr std::string_view kNewInterrupts = "new-interrupts";

/// /proc/irq/<number>/smp_affinity_list (Documentation/core-api/irq/irq-affinity.rst). Those that
/// VFIO handles belong to a VM, and are the daemon's (host::PassedThrough).
class Interrupts final : public HostMasks {
 public:
  explicit Interrupts(const Roots& roots) : roots_(roots) {}

  std::string_view kind() const override { return "interrupt"; }
  bool is_of_interrupts() const override { return true; }
  bool moves_elsewhere() const override { return true; }
  std::string_view born_by() const override { return kNewInterrupts; }
  base::Result<std::vector<HostMask>> read() const override;
  base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const override;

 private:
  Roots roots_;
};

/// /proc/irq/default_smp_affinity.
class NewInterrupts final : public HostMasks {
 public:
  explicit NewInterrupts(const Roots& roots) : file_(roots.proc / "irq/default_smp_affinity") {}

  std::string_view kind() const override { return kNewInterrupts; }
  bool is_of_interrupts() const override { return true; }
  bool moves_elsewhere() const override { return true; }
  base::Result<std::vector<HostMask>> read() const override;
  base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const override;

 private:
  std::filesystem::path file_;
};

}  // namespace ka::helper
