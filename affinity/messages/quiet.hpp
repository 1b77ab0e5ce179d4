// SPDX-License-Identifier: Apache-2.0
// grade = "quiet" in words.
#pragma once

#include <string>

#include "policy/plan/quiet.hpp"

namespace ka::messages {

/// "the host would lose CPUs that it always keeps (quiet_floor)".
std::string obstacle_text(const policy::plan::QuietObstacle& obstacle);

/// A setting or a command; empty: there is none, or another finding has it.
std::string remedy_text(const policy::plan::QuietObstacle& obstacle, const std::string& sandbox);

}  // namespace ka::messages
