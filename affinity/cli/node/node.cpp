// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/node/node.hpp"

#include <algorithm>

#include "base/files.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

bool has_word(const std::string& line, const std::string& word) {
  return (' ' + line + ' ').find(' ' + word + ' ') != std::string::npos;
}

void read_cgroups(const fs::path& root, NodeFacts& node) {
  const fs::path cgroups = root / "sys/fs/cgroup";
  const std::string controllers = first_line_of(cgroups / "cgroup.controllers");
  node.cgroup_v2 = !controllers.empty();
  node.has_cpusets =
      node.cgroup_v2 ? has_word(controllers, "cpuset") : is_there(cgroups / "cpuset");
  node.systemd_scopes = is_there(cgroups / "kubepods.slice");
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

}  // namespace

std::string first_line_of(const fs::path& file) {
  const std::string text = base::read_file(file).value_or("");
  return text.substr(0, text.find('\n'));
}

base::Result<watch::KubeletState> read_kubelet_state(const fs::path& root) {
  const auto text =
      base::read_regular_file(root / "var/lib/kubelet/cpu_manager_state", watch::kMaxKubeletState);
  if (!text) return unexpected(text.error());
  return watch::parse_kubelet_state(*text);
}

NodeFacts read_node(const fs::path& root) {
  NodeFacts node;
  read_cgroups(root, node);
  read_cpus(root, node);
  node.nri = is_there(root / "run/nri/nri.sock") || is_there(root / "var/run/nri/nri.sock");
  return node;
}

}  // namespace ka::cli
