// SPDX-License-Identifier: Apache-2.0
// Which partitions there are to be.
#pragma once

#include <map>
#include <string>

#include "affinity/line/node.hpp"
#include "policy/facts/partition.hpp"

namespace ka::partitions {

using Wants = std::map<std::string, policy::Partition>;  ///< by sandbox

struct Candidates {
  Wants wants;
  std::map<std::string, std::string> barred;  ///< by sandbox: why it is to have none
};

/// For the dedicated vCPUs of each quiet sandbox, on CPUs that the host is kept off already and
/// that no other thread of the sandbox is planned on.
Candidates candidates_of(const line::Node& node);

}  // namespace ka::partitions
