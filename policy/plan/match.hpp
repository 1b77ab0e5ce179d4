// SPDX-License-Identifier: Apache-2.0
// Which vCPU serves which CPU: guest siblings on host siblings, guest nodes on host nodes, and as
// it was before wherever that still fits.
#pragma once

#include <cstddef>
#include <vector>

#include "policy/facts/sandbox.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/assign.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

inline constexpr std::size_t kUnserved = static_cast<std::size_t>(-1);

/// One vCPU's place in a holding. In a dedicated holding `cpu` is the vCPU's CPU; in a group it is
/// where the vCPU would sit, which is how a group, too, gets vCPUs that belong together.
struct Slot {
  std::size_t holding = 0;
  int cpu = 0;
  int core = 0;
  int node = 0;
  std::size_t vcpu = kUnserved;  ///< position in SandboxFacts::vcpus

  bool operator==(const Slot&) const = default;
};

/// Fills every slot that the assignment asks for; the vCPUs without a slot float. The lowest vCPU
/// floats first, with its guest core where as many float, then whole guest cores.
///
/// `previous` (may be null): a CPU that is still dedicated to the same container keeps its vCPU,
/// and a group its vCPUs. A previous plan in which no vCPU floated was provisional: as soon as one
/// may float, its lowest vCPU is let go.
std::vector<Slot> match(const Topology& topology, const SandboxFacts& sandbox,
                        const Assignment& assignment, const SandboxPlan* previous);

/// The vCPUs that served an exclusive container, or were held for it. One that was made again under
/// its name counts as the one that it was.
VcpuSet vcpus_before(const SandboxFacts& sandbox, const ContainerFacts& container,
                     const SandboxPlan& previous);

/// The vCPU that others have to share where none floats: that of the lowest CPU (of a group: the
/// lowest index). kUnserved where no slot is filled.
std::size_t lowest_owned_vcpu(const Assignment& assignment, const std::vector<Slot>& slots);

}  // namespace ka::policy::plan
