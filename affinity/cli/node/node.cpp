// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/node/node.hpp"

#include <algorithm>

#include "affinity/host/cgroup_names.hpp"
#include "base/files.hpp"
#include "base/split.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

/// All cgroups but the root have this file, where the kernel has it (CFTYPE_NOT_ON_ROOT in
/// kernel/cgroup/cpuset.c) and the cpuset controller is enabled above them.
std::optional<bool> has_remote_partitions(const fs::path& cgroups) {
  const auto names = base::list_directory(cgroups);
  if (!names) return std::nullopt;
  std::optional<bool> has;
  for (const std::string& name : *names) {
    if (is_there(cgroups / name / "cpuset.cpus.exclusive")) return true;
    if (is_there(cgroups / name / "cpuset.cpus")) has = false;
  }
  return has;
}

void read_cgroups(const fs::path& root, NodeFacts& node) {
  const fs::path cgroups = root / "sys/fs/cgroup";
  const std::string controllers = first_line_of(cgroups / "cgroup.controllers");
  node.cgroup_v2 = !controllers.empty();
  node.has_cpusets =
      node.cgroup_v2 ? base::has_part(controllers, ' ', "cpuset") : is_there(cgroups / "cpuset");
  if (node.cgroup_v2) node.remote_partitions = has_remote_partitions(cgroups);
  node.systemd_scopes = is_there(cgroups / host::kPodsSlice);
  node.systemd_answers = is_there(root / "run/systemd/private");
}

policy::CpuSet read_set(const fs::path& file) {
  return policy::parse_list<policy::CpuTag>(first_line_of(file)).value_or(policy::CpuSet{});
}

void read_cpus(const fs::path& root, NodeFacts& node) {
  node.shared_pool = read_set(root / "sys/devices/system/cpu/online");
  node.cpus = node.shared_pool.size();
  node.numa_nodes = std::max(1, read_set(root / "sys/devices/system/node/has_cpu").size());
  const auto state = read_kubelet_state(root);
  if (!state) return;
  node.cpu_policy = state->policy;
  if (node.assigns_cpus()) node.shared_pool = state->seen.shared_pool.value_or(policy::CpuSet{});
}

constexpr std::string_view kVersion = "\nVersion: ";
/// After what is wanted of it: "install", or "hold" where `apt-mark hold` keeps its version.
constexpr std::string_view kInstalled = " ok installed\n";

/// Of "1:1.6.20~ds1-1": an epoch is not part of it.
std::optional<Version> major_and_minor(const std::string& text) {
  const auto colon = text.substr(0, text.find('\n')).find(':');
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 1;
  const std::size_t dot = text.find('.', begin);
  if (dot == std::string::npos) return std::nullopt;
  const std::size_t end = text.find_first_not_of("0123456789", dot + 1);
  const auto major = base::parse_number(text.substr(begin, dot - begin));
  const auto minor = base::parse_number(text.substr(dot + 1, end - dot - 1));
  if (!major || !minor) return std::nullopt;
  return Version{*major, *minor};
}

}  // namespace

std::string first_line_of(const fs::path& file) {
  const std::string text = base::read_regular_file(file).value_or("");
  return text.substr(0, text.find('\n'));
}

base::Result<watch::KubeletState> read_kubelet_state(const fs::path& root) {
  const auto text =
      base::read_regular_file(root / "var/lib/kubelet/cpu_manager_state", watch::kMaxKubeletState);
  if (!text) return unexpected(text.error());
  return watch::parse_kubelet_state(*text);
}

bool has_nri_socket(const fs::path& root) {
  return is_there(root / "run/nri/nri.sock") || is_there(root / "var/run/nri/nri.sock");
}

std::optional<Version> package_version(const fs::path& root, std::string_view package) {
  constexpr std::size_t kLargest = std::size_t{64} << 20;
  const std::string status =
      '\n' + base::read_regular_file(root / "var/lib/dpkg/status", kLargest).value_or("");
  const std::size_t begin = status.find("\nPackage: " + std::string(package) + '\n');
  if (begin == std::string::npos) return std::nullopt;
  const std::string paragraph = status.substr(begin, status.find("\n\n", begin) - begin);
  const std::size_t field = paragraph.find(kVersion);
  if (field == std::string::npos || paragraph.find(kInstalled) == std::string::npos) {
    return std::nullopt;
  }
  return major_and_minor(paragraph.substr(field + kVersion.size()));
}

NodeFacts read_node(const fs::path& root) {
  NodeFacts node;
  read_cgroups(root, node);
  read_cpus(root, node);
  node.nri = has_nri_socket(root);
  return node;
}

}  // namespace ka::cli
