// SPDX-License-Identifier: Apache-2.0
// What the machine can do, from resctrl's info/.
#pragma once

#include "affinity/helper/resctrl.hpp"
#include "base/result.hpp"
#include "policy/plan/rdt.hpp"

namespace ka::helper {

/// kUnavailable: resctrl is not mounted. Any other error: it cannot be understood.
base::Result<policy::plan::RdtFacts> read_rdt_facts(const Resctrl& resctrl);

}  // namespace ka::helper
