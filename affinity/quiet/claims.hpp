// SPDX-License-Identifier: Apache-2.0
// Which CPUs pods whose grade is quiet want for themselves: a VM sandbox those of its dedicated
// vCPUs, any other pod those that its containers own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "affinity/line/node.hpp"
#include "policy/plan/quiet.hpp"

namespace ka::quiet {

/// By the pod's id: why it is best-effort; absent: it is quiet.
using Verdicts = std::map<std::string, std::optional<policy::plan::QuietObstacle>, std::less<>>;

struct Wants {
  std::vector<policy::plan::QuietClaim> claims;  ///< each with a CPU
  Verdicts barred;                               ///< the other pods whose grade is quiet
  /// Of containers whose pods request by annotation that the host's interrupts stay away.
  policy::CpuSet interrupts;
};

/// From the plans as they are now: a sandbox has vCPUs in its plan when its VMM is there, and not
/// before. A container has CPUs until it exits. `held`: what is granted already.
Wants wants_of(const line::Node& node, const policy::CpuSet& held);

}  // namespace ka::quiet
