// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/interrupts.hpp"

namespace ka::policy::plan {

CpuSet interrupt_cpus(const Topology& topology, const SandboxPlan& plan,
                      const DeviceFacts& device) {
  CpuSet serving, all;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    if (!vcpu.placed) continue;
    all |= vcpu.cpus;
    if (!vcpu.container.empty()) serving |= vcpu.cpus;
  }
  const CpuSet& cpus = serving.empty() ? all : serving;
  const CpuSet near = cpus & topology.node_cpus(device.node);
  return near.empty() ? cpus : near;
}

}  // namespace ka::policy::plan
