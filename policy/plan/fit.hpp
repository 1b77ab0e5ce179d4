// SPDX-License-Identifier: Apache-2.0
// Guest cores onto host cores, guest nodes onto host nodes.
#pragma once

#include <vector>

#include "policy/facts/sandbox.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/match.hpp"

namespace ka::policy::plan {

/// Fills the open slots with `free` vCPUs (by position in `vcpus`); there must be enough of them.
/// Guest siblings go to host siblings; each guest node to a host node of its own where there are
/// enough, to the one where most of it is already, and what does not fit to the nearest. A guest
/// core is divided between host cores, or between nodes, only where it fits on none whole.
void fit(const Topology& topology, const std::vector<VcpuFacts>& vcpus,
         const std::vector<bool>& free, std::vector<Slot>& slots);

}  // namespace ka::policy::plan
