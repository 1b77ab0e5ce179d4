// SPDX-License-Identifier: Apache-2.0
// The reasons and warnings of a plan.
#pragma once

#include <string>

#include "policy/plan/plan.hpp"

namespace ka::messages {

/// One sentence without a full stop: "not isolated: CPU 7 also carries housekeeping".
std::string sentence(const policy::plan::Note& note);

}  // namespace ka::messages
