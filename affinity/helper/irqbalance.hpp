// SPDX-License-Identifier: Apache-2.0
// The CPUs that irqbalance may send interrupts to. It answers at
// /run/irqbalance/irqbalance<pid>.sock (its COMMUNICATION.md): "setup" with "... BANNED <mask>",
// and "settings cpus <list>" bans CPUs. It does so with its next round, 10 s later at most, and
// answers nothing while it looks at the machine again.
#pragma once

#include "affinity/helper/host_masks.hpp"

namespace ka::helper {

class Irqbalance final : public HostMasks {
 public:
  explicit Irqbalance(const Roots& roots) : roots_(roots) {}

  std::string_view kind() const override { return "irqbalance"; }
  bool is_of_interrupts() const override { return true; }
  base::Result<std::vector<HostMask>> read() const override;
  base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const override;

 private:
  base::Result<HostMask> read_one(const std::string& name, const policy::CpuSet& possible) const;

  Roots roots_;
};

}  // namespace ka::helper
