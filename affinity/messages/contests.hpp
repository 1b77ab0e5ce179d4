// SPDX-License-Identifier: Apache-2.0
// Messages about CPUs that are assigned more than once: log, `verify`, event stream.
#pragma once

#include <string>
#include <vector>

#include "policy/ledger/contests.hpp"

namespace ka::messages {

/// "container app of pod ns/a, container db of pod ns/b".
std::string contender_list(const std::vector<policy::ledger::Contender>& contenders);

/// "CPU 3 is assigned to more than one pod: container app of pod ns/a, container db of pod ns/b".
std::string sentence(const policy::ledger::Contest& contest);

}  // namespace ka::messages
