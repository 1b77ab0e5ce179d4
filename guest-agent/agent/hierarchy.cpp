// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/hierarchy.hpp"

#include <algorithm>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 16;
constexpr std::size_t kMostCgroups = 4096;
constexpr std::size_t kIdLength = 64;

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = std::min(text.find(by), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

bool has(std::string_view options, std::string_view option) {
  const auto all = split(options, ',');
  return std::ranges::find(all, option) != all.end();
}

struct Mount {
  fs::path at;
  std::string type;
  std::string options;
};

/// A line of mountinfo (proc(5)): "36 35 98:0 /root /at options optional... - type source super".
std::optional<Mount> parse_mount(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  const auto before = split(line.substr(0, dash), ' ');
  if (dash == std::string_view::npos || before.size() < 6) return std::nullopt;
  const auto behind = split(line.substr(dash + 3), ' ');
  if (behind.size() < 3) return std::nullopt;
  return Mount{fs::path(before[4]), std::string(behind[0]), std::string(behind[2])};
}

std::vector<Mount> cgroup_mounts(const Roots& roots) {
  std::vector<Mount> mounts;
  const auto text = read_text(roots.proc / "self/mountinfo").value_or("");
  for (const std::string_view line : split(text, '\n')) {
    auto mount = parse_mount(line);
    if (mount && mount->type.starts_with("cgroup")) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

bool controls_cpusets(const Mount& mount) {
  const auto controllers = read_text(mount.at / "cgroup.controllers").value_or("");
  const auto all = split(controllers, ' ');
  return std::ranges::find(all, "cpuset") != all.end();
}

class Walker {
 public:
  Walker(const std::set<std::string>& ids, Tree& tree) : ids_(ids), tree_(tree) {}

  void visit(const fs::path& directory, int depth) {
    if (depth > kDeepest || ++seen_ > kMostCgroups) return;
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
  const auto mounts = cgroup_mounts(roots);
  Hierarchy found;
  for (const Mount& mount : mounts) {
    const bool v2 = mount.type == "cgroup2";
    if (!v2 && has(mount.options, "cpu")) found.cpu = mount.at;
    if (v2 ? controls_cpusets(mount) : has(mount.options, "cpuset")) {
      found.kind = v2 ? CgroupKind::kV2 : CgroupKind::kV1;
      found.root = mount.at;
    }
  }
  if (found.kind != CgroupKind::kNone || mounts.empty()) return found;
  found.kind = CgroupKind::kOther;
  found.root = mounts.front().at;
  return found;
}

bool names_container(std::string_view cgroup, std::string_view id) {
  if (cgroup == id) return true;
  constexpr std::string_view kScope = ".scope";
  if (!cgroup.ends_with(kScope)) return false;
  cgroup.remove_suffix(kScope.size());
  return cgroup.ends_with(id) && cgroup.size() > id.size() + 1 &&
         cgroup[cgroup.size() - id.size() - 1] == '-';
}

bool is_container_name(std::string_view cgroup) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  constexpr std::string_view kScope = ".scope";
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
