// SPDX-License-Identifier: Apache-2.0
// What `explain --cpu` says: what each source reports of one CPU.
#pragma once

#include <optional>
#include <string>

#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::messages {

/// "container app of pod shop/cart": by the best names that are known.
std::string container_of_pod(const policy::ledger::PodRecord& pod,
                             const policy::ContainerFacts& container);

/// "container app of pod shop/cart may use CPUs 4-5", with an operator's word on who owns them.
std::string report_text(const policy::ledger::PodRecord& pod,
                        const policy::ContainerFacts& container, const policy::CpuSet& cpus,
                        std::optional<bool> exclusive);

/// "container app of pod 6f1c…": an owner that no source but kubelet has reported.
std::string claim_text(const policy::ledger::Claim& claim);

/// "CPU 4 is assigned to container app of pod 6f1c…", "CPU 4 is in the shared pool".
std::string kubelet_text(const policy::ledger::KubeletSeen& seen, int cpu);
std::string resources_text(const policy::ledger::ResourcesSeen& seen, int cpu);
/// "CPU 4 is prepared for ResourceClaim 5f0c…", "CPU 4 is in no prepared claim".
std::string prepared_text(const policy::ledger::Prepared& prepared, int cpu);

}  // namespace ka::messages
