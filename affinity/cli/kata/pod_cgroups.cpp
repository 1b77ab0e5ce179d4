// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kata/pod_cgroups.hpp"

#include <fmt/format.h>

#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/host/cgroup_names.hpp"
#include "base/files.hpp"

namespace ka::cli {

namespace fs = std::filesystem;

namespace {

bool has_pods(const fs::path& cgroup) {
  std::error_code unreadable;
  for (fs::directory_iterator it(cgroup, unreadable), end; !unreadable && it != end;
       it.increment(unreadable)) {
    if (!host::pod_uid_of(it->path()).empty()) return true;
  }
  return false;
}

/// kubelet delegates where it makes a pod's cgroup. systemd takes back from its slices what none of
/// its units asks for; without systemd it stays.
bool may_lack_cpuset(const fs::path& cgroup) {
  const auto delegated = base::read_file(cgroup / "cgroup.subtree_control");
  if (!delegated || delegated->find("cpuset") != std::string::npos) return false;
  return host::is_unit_name(cgroup) || has_pods(cgroup);
}

}  // namespace

bool is_sandbox_only(const config::Entries& entries, const fs::path& config) {
  return flag_at(entries, {"runtime", "sandbox_cgroup_only"}).value_or(is_rust(config));
}

std::vector<std::string> slices_without_cpuset(const fs::path& root) {
  std::vector<std::string> found;
  for (const std::string_view slice : host::kPodParents) {
    if (may_lack_cpuset(root / "sys/fs/cgroup" / slice)) found.emplace_back(slice);
  }
  return found;
}

std::optional<PodCgroupProblem> pod_cgroup_problem(const config::Entries& entries,
                                                   const fs::path& config,
                                                   const std::vector<std::string>& without_cpuset) {
  if (without_cpuset.empty() || is_sandbox_only(entries, config)) return std::nullopt;
  return PodCgroupProblem{
      fmt::format("sandbox_cgroup_only is off, and {} does not delegate cpuset to its pods: a Kata "
                  "pod without a runc pod beside it has no cgroup for kubelet, which kills that "
                  "pod at each sync",
                  fmt::join(without_cpuset, ", ")),
      "set sandbox_cgroup_only = true in [runtime], or keep a runc pod of that QoS class on the "
      "node (a DaemonSet)"};
}

}  // namespace ka::cli
