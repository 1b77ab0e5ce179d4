// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/container_cgroup.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "affinity/helper/exclusive_cpus.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;

constexpr std::size_t kIdSize = 64;
constexpr std::string_view kScope = ".scope";

/// ID, cri-containerd-ID.scope, crio-ID.scope.
bool is_named_after_id(std::string_view name) {
  if (name.ends_with(kScope)) name.remove_suffix(kScope.size());
  if (name.size() < kIdSize) return false;
  return std::ranges::all_of(name.substr(name.size() - kIdSize),
                             [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string_view name_of(std::string_view cgroup) { return cgroup.substr(cgroup.rfind('/') + 1); }

}  // namespace

std::string container_around(const std::string& home) {
  if (!home.starts_with("/kubepods/") && !home.starts_with("/kubepods.slice/")) return {};
  const std::vector<std::string> way = way_to(home);
  const auto found = std::ranges::find_if(way, is_named_after_id, name_of);
  return found == way.end() ? std::string() : *found;
}

base::Result<void> check_container(const CgroupTree& tree, const std::string& container,
                                   const policy::CpuSet& cpus) {
  const auto configured = read_cpus(tree, container, "cpuset.cpus");
  if (is_gone(configured)) {
    return base::fail(ErrorCode::kUnavailable, "its cgroup has no cpuset");
  }
  if (!configured) return unexpected(configured.error());
  if (*configured == cpus) return {};
  return base::fail(ErrorCode::kConflict,
                    "its cgroup allows CPUs " + policy::format_list(*configured));
}

}  // namespace ka::helper
