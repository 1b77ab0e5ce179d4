// Which number a guest's kernel gives a vCPU, where nobody in the guest can be asked. The VMM's
// index, KVM's id and the guest's number differ after hot-plug, so often enough the answer is that
// it is not known.
#pragma once

#include <optional>
#include <vector>

#include "policy/facts/guest.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::policy {

/// What the VMM's command line tells of its guest.
struct BootFacts {
  std::optional<int> cold_vcpus;  ///< with which the VM was started
  bool plugs_none = false;        ///< this VMM cannot plug vCPUs
  /// Its kernel numbers all vCPUs that there may ever be by their APIC ids at boot, so that one
  /// that is plugged later has its index for a number: Linux since 6.9
  /// (topology_init_possible_cpus()), counted here from 6.10 on to be safe.
  bool numbers_at_boot = false;

  bool operator==(const BootFacts&) const = default;
};

/// The guest's CPUs, all of them online. Absent: their numbers are not certain.
std::optional<std::vector<GuestCpu>> guest_cpus_without_agent(const std::vector<VcpuFacts>& vcpus,
                                                              const BootFacts& boot);

}  // namespace ka::policy
