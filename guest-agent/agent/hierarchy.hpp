// SPDX-License-Identifier: Apache-2.0
// Where this guest keeps the cgroups of its containers, and which cgroup is whose. Here kata-agent
// alone names them, and any program may make others with similar names: the host's rules
// (affinity/host/cgroup_names.hpp: kubelet's, several runtimes', libvirt's) would let in too many.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "guest-agent/agent/kernel.hpp"

namespace ka::agent {

enum class CgroupKind {
  kNone,   ///< no cgroups at all
  kV2,     ///< one hierarchy, with cpusets
  kV1,     ///< cpusets in a hierarchy of their own
  kOther,  ///< cgroups, and none of them has cpusets
};

struct Hierarchy {
  CgroupKind kind = CgroupKind::kNone;
  std::filesystem::path root;  ///< where it is mounted
  std::filesystem::path cpu;   ///< v1: where the cpu controller (the CFS quota) is; may be empty

  bool operator==(const Hierarchy&) const = default;
};

/// By /proc/self/mountinfo.
Hierarchy find_hierarchy(const Roots& roots);

/// Whether a cgroup of this name is that of the container: kata-agent names it by the id
/// (cgroupfs), or as "<prefix>-<id>.scope" (systemd).
bool names_container(std::string_view cgroup, std::string_view id);

/// Whether it is that of some container, as container runtimes name them: 64 hex digits.
bool is_container_name(std::string_view cgroup);

/// The cgroups of a hierarchy that matter.
struct Tree {
  std::map<std::string, std::filesystem::path> containers;  ///< by id
  std::vector<std::filesystem::path> strangers;             ///< of containers that no host named
  std::vector<std::filesystem::path> branches;  ///< in which a new container would appear
};

/// Walks the hierarchy: at most 16 deep and 4096 cgroups, never into a container's own.
Tree walk(const Hierarchy& hierarchy, const std::set<std::string>& ids);

}  // namespace ka::agent
