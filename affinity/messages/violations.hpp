// SPDX-License-Identifier: Apache-2.0
// Messages of verify about violated invariants.
#pragma once

#include <string>

#include "policy/plan/guest.hpp"
#include "policy/plan/invariants.hpp"

namespace ka::messages {

/// The predicate of a sentence: "may run on a CPU that is exclusive to another pod".
std::string sentence(policy::plan::Breach breach);

/// "container c1 may run on guest CPUs 0-3 instead of 1"
std::string sentence(const policy::plan::GuestBreach& breach);

}  // namespace ka::messages
