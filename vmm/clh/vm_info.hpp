// SPDX-License-Identifier: Apache-2.0
// What Cloud Hypervisor's API reports of a VM (vmm/src/api/openapi/cloud-hypervisor.yaml: VmInfo):
// how many vCPUs it has and how the guest sees them. It never names a thread; their names do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::clh {

inline constexpr std::string_view kVmInfo = "/api/v1/vm.info";

struct VmInfo {
  int vcpus = 0;  ///< now: vm.resize changes what it had when it booted (Vm::resize() in vm.rs)
  int threads_per_core = 1;
  int cores_per_package = 0;  ///< 0: all in one package
  std::map<int, int> nodes;   ///< the guest's NUMA node, by vCPU; where it has nodes
  std::optional<int> max_vcpus;
  std::string kernel;  ///< absolute path; empty: booted by firmware, or not a path that is usable

  bool operator==(const VmInfo&) const = default;
};

/// kInvalid for what is no such answer: no JSON, a member that is missing, of a wrong type, or out
/// of bounds.
base::Result<VmInfo> read_vm_info(std::string_view body);

/// Threads are not in it (tid 0). vCPU N is thread N % t of core N / t, as its APIC id is made
/// (CpuManager in vmm/src/cpu.rs). vCPUs come and go in order (its create_vcpus(), and
/// mark_vcpus_for_removal()).
vmm::MonitorFacts to_facts(const VmInfo& info);

}  // namespace ka::clh
