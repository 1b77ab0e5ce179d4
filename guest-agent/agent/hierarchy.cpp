// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/hierarchy.hpp"

#include <algorithm>
#include <utility>

#include "base/cgroup_files.hpp"
#include "base/mounts.hpp"
#include "base/split.hpp"
#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestCgroup = 16;
constexpr std::size_t kMostCgroups = 4096;
constexpr std::size_t kIdLength = 64;
constexpr std::string_view kScope = ".scope";

class Walker {
 public:
  Walker(const std::set<std::string>& ids, Tree& tree) : ids_(ids), tree_(tree) {}

  void visit(const fs::path& directory, int depth) {
    if (depth > kDeepestCgroup || ++seen_ > kMostCgroups) return;
    tree_.branches.push_back(directory);
    for (const std::string& name : list_directories(directory)) {
      const fs::path below = directory / name;
      if (const std::string* id = find(name)) {
        tree_.containers.emplace(*id, below);
      } else if (is_container_name(name)) {
        tree_.strangers.push_back(below);
      } else {
        visit(below, depth + 1);
      }
    }
  }

 private:
  const std::string* find(std::string_view name) const {
    for (const std::string& id : ids_) {
      if (names_container(name, id)) return &id;
    }
    return nullptr;
  }

  const std::set<std::string>& ids_;
  Tree& tree_;
  std::size_t seen_ = 0;
};

}  // namespace

Hierarchy find_hierarchy(const Roots& roots) {
  const std::string text = read_text(roots.proc / "self/mountinfo").value_or("");
  auto mounts = base::parse_mounts(text);
  std::erase_if(mounts, [](const base::Mount& one) { return !one.type.starts_with("cgroup"); });
  if (mounts.empty()) return {};
  Hierarchy found{CgroupKind::kOther, mounts.front().point, {}};
  for (const base::Mount& mount : mounts) {
    const bool v1 = mount.type == "cgroup";
    if (v1 && base::has_part(mount.options, ',', "cpu")) found.cpu = mount.point;
  }
  if (auto cpusets = base::find_cpuset_hierarchy(mounts).value_or(std::nullopt)) {
    found.kind = cpusets->version == 2 ? CgroupKind::kV2 : CgroupKind::kV1;
    found.root = std::move(cpusets->mount);
  }
  return found;
}

bool names_container(std::string_view cgroup, std::string_view id) {
  if (cgroup == id) return true;
  if (!cgroup.ends_with(kScope)) return false;
  cgroup.remove_suffix(kScope.size());
  return cgroup.ends_with(id) && cgroup.size() > id.size() + 1 &&
         cgroup[cgroup.size() - id.size() - 1] == '-';
}

bool is_container_name(std::string_view cgroup) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (cgroup.ends_with(kScope)) cgroup.remove_suffix(kScope.size());
  if (cgroup.size() > kIdLength && cgroup[cgroup.size() - kIdLength - 1] == '-') {
    cgroup.remove_prefix(cgroup.size() - kIdLength);
  }
  return cgroup.size() == kIdLength && std::ranges::all_of(cgroup, is_hex);
}

Tree walk(const Hierarchy& hierarchy, const std::set<std::string>& ids) {
  Tree tree;
  if (hierarchy.kind != CgroupKind::kNone) Walker(ids, tree).visit(hierarchy.root, 0);
  return tree;
}

}  // namespace ka::agent
