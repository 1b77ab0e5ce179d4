// SPDX-License-Identifier: Apache-2.0
// Why a VM may have fewer vCPUs than its containers own CPUs.
#pragma once

#include <filesystem>
#include <string>

#include "affinity/cli/node/node.hpp"

namespace ka::cli {

inline constexpr const char* kQuotaSizing =
    "static_sandbox_resource_mgmt is on: Kata sizes VMs by CPU quota";

/// Whether kubelet sets a CFS quota on pods with exclusive CPUs. From 1.33 on it does not, unless
/// the feature gate DisableCPUQuotaWithExclusiveCPUs is off.
struct QuotaOfExclusive {
  bool is_set = false;
  bool is_known = false;  ///< kubelet's version is known, from Debian's package
  std::string kubelet;    ///< "kubelet 1.35", "kubelet 1.33 and later"
};

QuotaOfExclusive quota_of_exclusive(const std::filesystem::path& root);

/// Pods that own CPUs have no quota, or may have none.
bool loses_quota(const NodeFacts& node, const QuotaOfExclusive& quota);

/// Settings of Kata below `root` that may have left a VM with `vcpus` vCPUs; empty: none is known.
std::string causes_of_few_vcpus(int vcpus, const std::filesystem::path& root);

}  // namespace ka::cli
