// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/doctor/sizing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "affinity/cli/doctor/kubelet_gate.hpp"
#include "affinity/cli/kata/kata_config.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;

constexpr Version kWithoutQuota{1, 33};  // kubelet

bool is_gate_off(const fs::path& root) {
  return !kubelet_gate(root, "DisableCPUQuotaWithExclusiveCPUs").value_or(true);
}

std::string causes_in(const fs::path& file, int vcpus, bool without_quota) {
  const auto entries = read_merged(file);
  if (!entries) return {};
  const auto limits = hypervisor_numbers(*entries, "default_maxvcpus");
  if (std::ranges::find(limits, static_cast<double>(vcpus)) != limits.end()) {
    return fmt::format("{}: default_maxvcpus is {}", file.native(), vcpus);
  }
  const bool is_static =
      flag_at(*entries, {"runtime", "static_sandbox_resource_mgmt"}).value_or(is_rust(file));
  if (!is_static || !without_quota) return {};
  return file.native() + ": " + kQuotaSizing + ", and the pod may have none";
}

}  // namespace

QuotaOfExclusive quota_of_exclusive(const fs::path& root) {
  const auto version = package_version(root, "kubelet");
  return {.is_set = is_gate_off(root) || version.value_or(kWithoutQuota) < kWithoutQuota,
          .is_known = version.has_value(),
          .kubelet = version ? fmt::format("kubelet {}.{}", version->first, version->second)
                             : "kubelet 1.33 and later"};
}

bool loses_quota(const NodeFacts& node, const QuotaOfExclusive& quota) {
  return node.assigns_cpus() && !quota.is_set;
}

std::string causes_of_few_vcpus(int vcpus, const fs::path& root) {
  const bool without_quota = loses_quota(read_node(root), quota_of_exclusive(root));
  std::string causes;
  for (const fs::path& file : find_kata(root)) {
    const std::string cause = causes_in(file, vcpus, without_quota);
    if (!cause.empty()) causes += "; " + cause;
  }
  return causes;
}

}  // namespace ka::cli
