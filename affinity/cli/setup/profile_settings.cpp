// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/setup/profile_settings.hpp"

namespace ka::cli {
namespace {

/// Why other threads of a VM cannot leave for the shared pool; empty: they can.
std::string confined(const NodeFacts& node) {
  if (!node.cgroup_v2) {
    return "the node has cgroup v1, where the cpuset of a sandbox cannot be widened";
  }
  if (node.shared_pool.empty()) return "the shared pool is empty";
  if (node.systemd_scopes && !node.systemd_answers) {
    return "pods' cgroups are systemd units, and systemd has no socket at /run/systemd/private";
  }
  return {};
}

void add_notes(const NodeFacts& node, ProfileSettings& settings) {
  if (!node.assigns_cpus()) {
    settings.notes.emplace_back(
        "kubelet's CPU manager policy is not static, so no container owns CPUs yet: set "
        "cpuManagerPolicy: static in kubelet's configuration");
  }
  if (!node.nri) {
    settings.notes.emplace_back(
        "there is no NRI socket: the cgroup of a runtime-rs sandbox is only widened where NRI, the "
        "shim proxy or the API reports its containers");
  }
}

ProfileSettings isolated(const NodeFacts& node) {
  ProfileSettings settings{{{"mode", "follow"}}, {}};
  const std::string why = confined(node);
  if (why.empty()) {
    settings.keys.insert(settings.keys.end(),
                         {{"housekeeping", "shared-pool"}, {"cgroup", "manage"}});
  } else {
    settings.keys.emplace_back("housekeeping", "isolate");
    settings.notes.push_back(why +
                             ": one core of each pod is set aside instead; request one "
                             "core more than the workload uses");
  }
  if (node.numa_nodes > 1) settings.keys.emplace_back("memory", "migrate");
  add_notes(node, settings);
  return settings;
}

}  // namespace

base::Result<ProfileSettings> settings_of(Profile profile, const NodeFacts& node) {
  if (profile == Profile::kWatch) return ProfileSettings{{{"mode", "observe"}}, {}};
  if (profile == Profile::kDefault) return ProfileSettings{{{"mode", "follow"}}, {}};
  if (node.has_cpusets) return isolated(node);
  return base::fail(base::ErrorCode::kNotFound,
                    "this node cannot isolate: the kernel has no cpuset controller (boot without "
                    "cgroup_disable=cpuset, and mount cgroups at /sys/fs/cgroup)");
}

ProfileText text_of(Profile profile, const NodeFacts& node) {
  switch (profile) {
    case Profile::kWatch:
      return {"Plans and reports where each thread should run; writes nothing.",
              "Costs nothing, isolates nothing."};
    case Profile::kDefault:
      return {"Pins each vCPU of an exclusive container to one of its CPUs.",
              "Costs nothing; other threads of the VM still run on the same CPUs."};
    case Profile::kIsolated:
      break;
  }
  const std::string gives =
      "An exclusive CPU carries one vCPU of its container, and no other thread of the VM.";
  if (!confined(node).empty()) {
    return {gives, "Costs one core of each pod, which carries the other threads."};
  }
  return {gives, "Costs CPU time in the shared pool (CPUs " +
                     policy::format_list(node.shared_pool) + "), where the other threads run."};
}

}  // namespace ka::cli
