// SPDX-License-Identifier: Apache-2.0
// Which CPUs does a container get? The entry to the allocation core.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/allocate/pipeline.hpp"

namespace ka::policy::allocate {

/// The built-in policies, from the tables at the top of allocate.cpp. "packed" and "distributed"
/// are kubelet's. "fitted" is ours: the least spread there is (fitting.hpp); packed begins in the
/// fullest node even where that splits a small request.
std::span<const Pipeline> builtin_policies();
/// nullptr for an unknown name.
const Pipeline* find_policy(std::string_view name);
const Pipeline& packed_policy();
const Pipeline& distributed_policy();
const Pipeline& fitted_policy();
/// Steps of the built-in policies by their names, in the table's order, whatever the order of the
/// names. The error says which step is unknown or missing: without some no request is answered, or
/// reserved CPUs are given away.
Expected<Pipeline, std::string> policy_of(const std::vector<std::string>& steps);
/// The names that policy_of() knows.
std::vector<std::string_view> step_names();
/// The one that the options ask for.
const Pipeline& policy_for(OptionSet options);

/// Answers a request: takes CPUs for a new container (`held` empty) or one that grows, gives back
/// those of one that shrinks. Fewer than 0 CPUs count as 0.
///
/// With the built-in policies the answer to a new container is kubelet's
/// (docs/understand/allocation.md has the exceptions). The options must have passed
/// refused_options().
///
/// full-pcpus-only is kept at any price: where kubelet's answer would break a core, as it may where
/// CPUs are free whose siblings are not, the request is answered from whole cores alone, or
/// refused. So it is when a container shrinks.
Expected<CpuAllocation, Refusal> allocate(const Machine& machine, const CpuRequest& request,
                                          const Pipeline& pipeline);

/// `count` of these CPUs by the packed policy; all of them where they are fewer.
CpuSet pack(const Machine& machine, const CpuSet& cpus, int count);

}  // namespace ka::policy::allocate
