// SPDX-License-Identifier: Apache-2.0
// Messages about CPUs that are assigned more than once: log, `verify`, event stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/ledger/contests.hpp"

namespace ka::messages {

/// "container app of pod ns/a, container db of pod ns/b".
std::string contender_list(const std::vector<policy::ledger::Contender>& contenders);

/// "CPU 3 is assigned to more than one pod: container app of pod ns/a, container db of pod ns/b".
std::string sentence(const policy::ledger::Contest& contest);

/// The remedy for a contest, whoever assigned the CPUs.
inline constexpr std::string_view kContestRemedy =
    "restart one of the pods, or the pod of both containers; if they name one ResourceClaim, "
    "delete "
    "the pod that it is not reserved for";

}  // namespace ka::messages
