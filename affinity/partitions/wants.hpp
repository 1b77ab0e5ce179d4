// SPDX-License-Identifier: Apache-2.0
// Which partitions there are to be.
#pragma once

#include <map>
#include <string>

#include "affinity/line/node.hpp"
#include "policy/facts/partition.hpp"

namespace ka::partitions {

/// By sandbox; of a container without a VM by "POD/CONTAINER".
using Wants = std::map<std::string, policy::Partition>;
/// A process of each such container, by the same name: it is looked for once.
using Processes = std::map<std::string, policy::ThreadKey>;

struct Candidates {
  Wants wants;
  std::map<std::string, std::string> barred;  ///< by sandbox: why it is to have none
};

/// For the dedicated vCPUs of each quiet sandbox, on CPUs that the host is kept off already and
/// that no other thread of the sandbox is planned on; and for each exclusive container of a quiet
/// pod without a VM. The same for containers whose pods request that the kernel does not balance
/// their CPUs, whether the host is kept off these or not. Of `known` processes those that are still
/// needed stay, with those found.
Candidates candidates_of(const line::Node& node, Processes& known);

/// The sandbox or pod of one of Wants.
std::string pod_of(const std::string& want);

}  // namespace ka::partitions
