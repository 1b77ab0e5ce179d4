// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/doctor/sizing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "affinity/cli/kata/kata_config.hpp"
#include "base/files.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;

constexpr long long kWithoutQuota = 33;  // kubelet 1.33

/// The minor version of Debian's package; absent: kubelet was installed in another way.
std::optional<long long> kubelet_minor(const fs::path& root) {
  constexpr std::string_view kVersion = "\nVersion: 1.";
  constexpr std::size_t kLargest = std::size_t{64} << 20;
  const std::string status =
      '\n' + base::read_file(root / "var/lib/dpkg/status", kLargest).value_or("");
  const std::size_t package = status.find("\nPackage: kubelet\n");
  if (package == std::string::npos) return std::nullopt;
  const std::size_t version = status.find(kVersion, package);
  if (version == std::string::npos) return std::nullopt;
  const std::size_t minor = version + kVersion.size();
  const auto number = base::parse_number(status.substr(minor, status.find('.', minor) - minor));
  return number ? std::optional(*number) : std::nullopt;
}

bool is_gate_off(const fs::path& root) {
  const std::string config = base::read_file(root / "var/lib/kubelet/config.yaml").value_or("");
  return config.find("DisableCPUQuotaWithExclusiveCPUs: false") != std::string::npos;
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
  if (!is_static || !is_rust(file) || !without_quota) return {};
  return file.native() + ": " + kQuotaSizing + ", and the pod may have none";
}

}  // namespace

QuotaOfExclusive quota_of_exclusive(const fs::path& root) {
  const auto minor = kubelet_minor(root);
  return {.is_set = is_gate_off(root) || minor.value_or(kWithoutQuota) < kWithoutQuota,
          .is_known = minor.has_value(),
          .kubelet = minor ? fmt::format("kubelet 1.{}", *minor) : "kubelet 1.33 and later"};
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
