// SPDX-License-Identifier: Apache-2.0
// Where claims on CPUs, the environments that name them and kubelet's PodResources API contradict
// each other.
#pragma once

#include <vector>

#include "affinity/line/report.hpp"
#include "policy/ledger/refused.hpp"

namespace ka::line {

/// A finding for each container that names claims which are not its own, and for each that has
/// other claims by PodResources than by its environment. `is_current`: PodResources has answered
/// since.
std::vector<Finding> evaluate_claims(const policy::ledger::Ledger& ledger, bool is_current);

}  // namespace ka::line
