// SPDX-License-Identifier: Apache-2.0
// The responses of kubelet's PodResources API (k8s.io/kubelet/pkg/apis/podresources/v1).
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::pod_resources {

/// What List returned, sorted. Pods with the name of another are left out: which of
/// them a sandbox is cannot be known. kInvalid: no such message, a CPU or node that cannot be, or
/// more containers than are followed on a node (policy/facts/limits.hpp).
base::Result<std::vector<policy::ledger::Assignment>> parse_list(std::string_view message);

/// The CPUs of GetAllocatableResources: empty without a static CPU manager policy
/// (GetAllocatableCPUs() in pkg/kubelet/cm/cpumanager/policy_none.go). kInvalid as above.
base::Result<policy::CpuSet> parse_allocatable(std::string_view message);

}  // namespace ka::pod_resources
