// SPDX-License-Identifier: Apache-2.0
// Messages about RDT classes.
#pragma once

#include <string>

#include "policy/plan/rdt.hpp"

namespace ka::messages {

/// "the L3 cache has fewer ways"
std::string rdt_obstacle_text(const policy::plan::RdtObstacle& obstacle);

}  // namespace ka::messages
