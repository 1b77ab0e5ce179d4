// SPDX-License-Identifier: Apache-2.0
// A tree of cgroups that behaves as the kernel's does where partitions are made: what it refuses,
// what becomes of CPUs and threads. Each rule was seen on Linux 6.12 (docs/understand/
// partitions.md; tests/lab/node run partitions checks the kernel's side).
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "affinity/helper/cgroup_tree.hpp"

namespace ka::tests {

class FakeCgroupTree final : public helper::CgroupTree {
 public:
  /// Of 8 CPUs. Its cgroups have the cpuset controller.
  FakeCgroupTree() { groups_["/"].cpus = all(); }

  base::Result<void> open() override {
    if (version == 2) return {};
    return base::fail(base::ErrorCode::kUnavailable, "it takes cgroup v2");
  }

  base::Result<std::string> read(const std::string& cgroup,
                                 const std::string& file) const override {
    if (file == "cpu.max") return quota_of(cgroup);
    const auto found = groups_.find(cgroup);
    if (found == groups_.end() || !has_file(cgroup, file)) return unexpected(missing(cgroup, file));
    const Group& group = found->second;
    if (file == "cpuset.cpus") return policy::format_list(group.cpus) + '\n';
    if (file == "cpuset.cpus.exclusive") return policy::format_list(group.exclusive) + '\n';
    if (file == "cpuset.cpus.effective") return policy::format_list(effective(cgroup)) + '\n';
    if (file == "cpuset.cpus.partition") return group.state + '\n';
    if (file == "cgroup.type") return group.type + '\n';
    if (file == "cgroup.subtree_control") return std::string(group.enabled ? "cpuset\n" : "\n");
    return threads_of(cgroup);
  }

  base::Result<void> write(const std::string& cgroup, const std::string& file,
                           const std::string& text) const override {
    ++writes;
    if (before_write) before_write(cgroup + '/' + file);
    if (refuses.contains(cgroup + '/' + file)) {
      return base::fail_errno(refuses.at(cgroup + '/' + file), file);
    }
    if (!groups_.contains(cgroup) || !has_file(cgroup, file))
      return unexpected(missing(cgroup, file));
    return set(cgroup, file, text.substr(0, text.find('\n')));
  }

  base::Result<void> write_quota(const std::string& cgroup,
                                 const std::string& text) const override {
    const std::string path = cgroup + "/cpu.max";
    ++writes;
    if (before_write) before_write(path);
    if (refuses.contains(path)) return base::fail_errno(refuses.at(path), path);
    if (!quotas.contains(cgroup)) return unexpected(missing(cgroup, "cpu.max"));
    quotas[cgroup] = text == "max" ? "max 100000" : text;
    return {};
  }

  base::Result<bool> has(const std::string& cgroup) const override {
    return groups_.contains(cgroup);
  }

  base::Result<void> make(const std::string& cgroup) const override {
    ++writes;
    if (before_write) before_write(cgroup);
    groups_[cgroup] = {};
    return {};
  }

  base::Result<void> remove(const std::string& cgroup) const override {
    ++writes;
    if (before_write) before_write(cgroup);
    if (!groups_.contains(cgroup)) return base::fail_errno(ENOENT, cgroup);
    if (!children(cgroup).empty() || threads_of(cgroup) != "") {
      return base::fail_errno(EBUSY, cgroup);
    }
    groups_.erase(cgroup);
    return {};
  }

  base::Result<std::string> home(const policy::ThreadKey& thread) const override {
    const auto found = homes_.find(thread.tid);
    if (found == homes_.end()) return base::fail_errno(ENOENT, "cgroup");
    return found->second;
  }

  // What others do.

  void add(const std::string& cgroup, const policy::CpuSet& cpus = {}) const {
    groups_[cgroup].cpus = cpus;
    groups_[cgroup].enabled = true;
  }
  void configure(const std::string& cgroup, const policy::CpuSet& cpus) const {
    groups_.at(cgroup).cpus = cpus;
  }
  void put(int tid, const std::string& cgroup) const { homes_[tid] = cgroup; }
  void end(int tid) const { homes_.erase(tid); }
  /// As Kata does, whose thread takes its process along.
  void put_all(const std::string& cgroup) const {
    for (auto& [tid, home] : homes_) home = cgroup;
  }

  // What the kernel says.

  std::string where(int tid) const { return homes_.contains(tid) ? homes_.at(tid) : "gone"; }
  std::string cpus_of(const std::string& cgroup) const {
    return policy::format_list(effective(cgroup));
  }
  std::string exclusive(const std::string& cgroup) const {
    return policy::format_list(groups_.at(cgroup).exclusive);
  }
  std::string isolated() const {
    policy::CpuSet cpus;
    for (const auto& [name, group] : groups_) cpus |= of_partition(name);
    return policy::format_list(cpus);
  }
  /// All that there is, but for threads.
  std::string text() const {
    std::ostringstream text;
    for (const auto& [name, group] : groups_) {
      text << name << ' ' << policy::format_list(group.cpus) << ' '
           << policy::format_list(group.exclusive) << ' ' << group.state << ' ' << group.type << ' '
           << group.enabled << '\n';
    }
    return text.str();
  }

  int version = 2;
  bool has_exclusive = true;  ///< false: before 6.7
  /// By cgroup with the cpu controller.
  mutable std::map<std::string, std::string> quotas;
  mutable int writes = 0;
  std::map<std::string, int> refuses;  ///< by path of a file: errno
  /// Of a file; or of a cgroup, before it is made or removed.
  std::function<void(const std::string& path)> before_write;

 private:
  struct Group {
    policy::CpuSet cpus, exclusive;
    std::string state = "member", type = "domain";
    bool enabled = false;  ///< it hands the cpuset controller down
  };

  static policy::CpuSet all() { return policy::CpuSet::range(0, 7); }
  static std::string parent_of(const std::string& cgroup) {
    const auto end = cgroup.rfind('/');
    return end == 0 ? "/" : cgroup.substr(0, end);
  }
  static base::Error missing(const std::string& cgroup, const std::string& file) {
    return base::system_error(ENOENT, cgroup + '/' + file);
  }

  base::Result<std::string> quota_of(const std::string& cgroup) const {
    const auto found = quotas.find(cgroup);
    if (found == quotas.end()) return unexpected(missing(cgroup, "cpu.max"));
    return found->second + '\n';
  }

  bool has_file(const std::string& cgroup, const std::string& file) const {
    if (file == "cpuset.cpus.exclusive" && !has_exclusive) return false;
    if (!file.starts_with("cpuset.") || cgroup == "/" || parent_of(cgroup) == "/") return true;
    const auto above = groups_.find(parent_of(cgroup));
    return above != groups_.end() && above->second.enabled;
  }

  std::set<std::string> children(const std::string& cgroup) const {
    std::set<std::string> names;
    for (const auto& [name, group] : groups_) {
      if (name != "/" && parent_of(name) == cgroup) names.insert(name);
    }
    return names;
  }

  std::string threads_of(const std::string& cgroup) const {
    std::string text;
    for (const auto& [tid, home] : homes_) {
      if (home == cgroup) text += std::to_string(tid) + '\n';
    }
    return text;
  }

  /// What is exclusive all the way down to it.
  policy::CpuSet granted(std::string cgroup) const {
    policy::CpuSet cpus = all();
    for (; cgroup != "/"; cgroup = parent_of(cgroup)) cpus &= groups_.at(cgroup).exclusive;
    return cpus;
  }

  static bool is_kind(const std::string& state) { return state == "isolated" || state == "root"; }

  policy::CpuSet of_partition(const std::string& cgroup) const {
    return is_kind(groups_.at(cgroup).state) ? granted(cgroup) : policy::CpuSet{};
  }

  policy::CpuSet effective(const std::string& cgroup) const {
    if (!of_partition(cgroup).empty()) return of_partition(cgroup);
    policy::CpuSet taken;
    for (const auto& [name, group] : groups_) taken |= of_partition(name);
    if (cgroup == "/") return all() - taken;
    const policy::CpuSet above = effective(parent_of(cgroup));
    const policy::CpuSet own = groups_.at(cgroup).cpus & above;
    return own.empty() ? above : own;
  }

  base::Result<void> set(const std::string& cgroup, const std::string& file,
                         const std::string& text) const {
    Group& group = groups_.at(cgroup);
    if (file == "cpuset.cpus.exclusive") return set_exclusive(cgroup, text);
    if (file == "cgroup.threads") return move(std::stoi(text), cgroup);
    if (file == "cgroup.type") group.type = text;
    if (file == "cgroup.subtree_control") set_controller(cgroup, text == "+cpuset");
    if (file == "cpuset.cpus.partition") group.state = state_of(cgroup, text);
    return {};
  }

  std::string state_of(const std::string& cgroup, const std::string& wanted) const {
    if (!is_kind(wanted) || !granted(cgroup).empty()) return wanted;
    return wanted + " invalid (Invalid cpu list in cpuset.cpus.exclusive)";
  }

  base::Result<void> set_exclusive(const std::string& cgroup, const std::string& text) const {
    const policy::CpuSet cpus = policy::parse_list<policy::CpuTag>(text).value();
    for (const std::string& sibling : children(parent_of(cgroup))) {
      if (sibling != cgroup && groups_.at(sibling).exclusive.intersects(cpus)) {
        return base::fail_errno(EINVAL, cgroup);
      }
    }
    groups_.at(cgroup).exclusive = cpus;
    for (auto& [name, group] : groups_) {
      if (is_kind(group.state)) group.state = state_of(name, group.state);
    }
    return {};
  }

  void set_controller(const std::string& cgroup, bool enabled) const {
    groups_.at(cgroup).enabled = enabled;
    if (enabled) return;
    for (const std::string& child : children(cgroup)) {
      groups_.at(child).state = "member";
      groups_.at(child).exclusive = {};
    }
  }

  /// Threads move only within a domain.
  base::Result<void> move(int tid, const std::string& cgroup) const {
    const auto found = homes_.find(tid);
    if (found == homes_.end()) return base::fail_errno(ESRCH, "cgroup.threads");
    const bool down = parent_of(cgroup) == found->second && groups_.at(cgroup).type == "threaded";
    const bool up = cgroup == parent_of(found->second);
    if (!down && !up && cgroup != found->second) return base::fail_errno(EOPNOTSUPP, cgroup);
    found->second = cgroup;
    return {};
  }

  mutable std::map<std::string, Group> groups_;
  mutable std::map<int, std::string> homes_;
};

}  // namespace ka::tests
