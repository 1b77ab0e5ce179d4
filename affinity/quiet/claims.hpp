// SPDX-License-Identifier: Apache-2.0
// Which CPUs sandboxes whose grade is quiet want for themselves.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "affinity/line/node.hpp"
#include "policy/plan/quiet.hpp"

namespace ka::quiet {

/// By sandbox: why it is best-effort; absent: it is quiet.
using Verdicts = std::map<std::string, std::optional<policy::plan::QuietObstacle>, std::less<>>;

struct Wants {
  std::vector<policy::plan::QuietClaim> claims;  ///< by sandbox, each with a CPU
  Verdicts barred;                               ///< the other sandboxes whose grade is quiet
};

/// From the plans as they are now: a sandbox has vCPUs in its plan when its VMM is there, and not
/// before. `held`: what is granted already.
Wants wants_of(const line::Node& node, const policy::CpuSet& held);

}  // namespace ka::quiet
