// SPDX-License-Identifier: Apache-2.0
// The last piece of the chain container -> vCPU -> CPU: a plan's vCPUs, by hardware id, and
// what they come to in a guest's own numbers. The host asks with the first half, the guest agent
// works by the second, and the host checks its answer with it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/guest.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/plan.hpp"
#include "policy/plan/settings.hpp"

namespace ka::policy::plan {

/// The request to a guest, by the plan of its sandbox. vCPUs without a known APIC id are left out:
/// they cannot be named. `may_grow`: the VM may get more vCPUs, so a container with fewer than
/// planned waits for them, on the common ones.
GuestSpec guest_spec(const SandboxPlan& plan, const std::vector<VcpuFacts>& vcpus,
                     const Topology& topology, const GuestSettings& settings, bool may_grow);

/// Some container has vCPUs that others are to keep off, or waits for such: where this is not so
/// every container may use every vCPU, and there is nothing to request from a guest.
bool keeps_vcpus_apart(const GuestSpec& spec);

/// A request in the guest's numbers.
struct GuestPlacement {
  GuestCpuSet online;
  GuestCpuSet common;  ///< never empty while a CPU is online
  std::map<std::string, GuestCpuSet> containers;
  /// Containers with some (or all) vCPUs offline.
  std::map<std::string, GuestProblem> problems;

  bool operator==(const GuestPlacement&) const = default;
};

/// Maps by hardware id, never by counting. Only CPUs that are online count. A container none of
/// whose vCPUs is online is placed on the CPUs in common.
GuestPlacement place_in_guest(const GuestSpec& spec, const std::vector<GuestCpu>& cpus);

/// A container that has CPUs of its own, and whose processes are not held on its vCPUs.
struct GuestBreach {
  std::string container;
  GuestProblem problem = GuestProblem::kNone;  ///< kNone: it is elsewhere than requested
  GuestCpuSet wanted, actual;

  bool operator==(const GuestBreach&) const = default;
};

/// Compares what a guest reports with what it was asked (I4). A container that is not there (yet)
/// has no processes, and breaks nothing.
std::vector<GuestBreach> check_guest(const GuestSpec& spec, const GuestReport& report);

}  // namespace ka::policy::plan
