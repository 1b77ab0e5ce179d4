// SPDX-License-Identifier: Apache-2.0
// CFS quotas of containers whose pods request to have none.
#pragma once

#include <string>
#include <vector>

#include "affinity/line/node.hpp"
#include "affinity/line/tuned_containers.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::line {

/// "POD/CONTAINER", by ids.
std::string quota_name(const TunedContainer& container);

/// Threads that its quota may stop: those of its dedicated vCPUs; without a VM one of its
/// processes. Empty: there is none (yet).
std::vector<policy::ThreadKey> quota_threads(const Node& node, const TunedContainer& container);

/// Why a quota may stop it, as the kernel has it now on the host and as its guest has reported it;
/// empty: none does.
std::string quota_problem(const Node& node, const TunedContainer& container);

}  // namespace ka::line
