// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/cpuset.hpp"

#include <cerrno>
#include <vector>

#include "base/cgroup_files.hpp"
#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

namespace fs = std::filesystem;
using policy::GuestCpuSet;

constexpr int kDeepestBelow = 8;  ///< below a container

std::optional<GuestCpuSet> read_cpus(const fs::path& file) {
  const auto text = read_text(file);
  if (!text) return std::nullopt;
  const auto cpus = policy::parse_list<policy::GuestCpuTag>(*text);
  if (!cpus) return std::nullopt;
  return *cpus;
}

int write_cpus(const fs::path& directory, const GuestCpuSet& cpus) {
  const fs::path file = directory / "cpuset.cpus";
  if (given_cpus(directory) == cpus) return 0;
  return write_text(file, policy::format_list(cpus));
}

/// The ancestors of `directory` below the root, the highest first.
std::vector<fs::path> ancestors(const fs::path& root, const fs::path& directory) {
  std::vector<fs::path> list;
  for (fs::path at = directory.parent_path(); at != root && at.has_relative_path();
       at = at.parent_path()) {
    list.insert(list.begin(), at);
  }
  return list;
}

int enable_controller(const fs::path& directory, const std::string& name) {
  const fs::path file = directory / "cgroup.subtree_control";
  const std::string enabled = ' ' + read_text(file).value_or("") + ' ';
  if (enabled.find(' ' + name + ' ') != std::string::npos) return 0;
  return write_text(file, '+' + name);
}

int prepare_v2(const Hierarchy& hierarchy, const fs::path& directory, const GuestCpuSet& cpus) {
  int error = enable_controller(hierarchy.root, "cpuset");
  for (const fs::path& ancestor : ancestors(hierarchy.root, directory)) {
    if (const int failed = enable_controller(ancestor, "cpuset")) error = failed;
    const auto own = given_cpus(ancestor);
    if (own && !own->empty() && !cpus.subset_of(*own)) write_cpus(ancestor, *own | cpus);
  }
  return error;
}

/// A v1 cpuset without memory nodes takes no threads.
void inherit_mems(const fs::path& directory) {
  if (!read_text(directory / "cpuset.mems").value_or("").empty()) return;
  const auto mems = read_text(directory.parent_path() / "cpuset.mems");
  if (mems && !mems->empty()) write_text(directory / "cpuset.mems", *mems);
}

int prepare_v1(const Hierarchy& hierarchy, const fs::path& directory, const GuestCpuSet& cpus) {
  for (const fs::path& ancestor : ancestors(hierarchy.root, directory)) {
    inherit_mems(ancestor);
    const GuestCpuSet has = given_cpus(ancestor).value_or(GuestCpuSet{});
    if (cpus.subset_of(has)) continue;
    if (const int error = write_cpus(ancestor, has | cpus)) return error;
  }
  return 0;
}

/// A v1 child must lie within its parent at any time: from above for what is let in, from below for
/// what is taken away.
int set_v1(const fs::path& directory, const GuestCpuSet& cpus, int depth = 0) {
  if (depth > kDeepestBelow) return ELOOP;
  inherit_mems(directory);
  const auto below = list_directories(directory);
  const GuestCpuSet before = given_cpus(directory).value_or(GuestCpuSet{});
  if (!below.empty()) {
    if (const int error = write_cpus(directory, before | cpus)) return error;
  }
  for (const std::string& name : below) {
    if (const int error = set_v1(directory / name, cpus, depth + 1)) return error;
  }
  return write_cpus(directory, cpus);
}

void collect_threads(const fs::path& directory, const char* file, std::vector<int>& threads,
                     int depth) {
  const auto here = read_numbers(directory / file);
  threads.insert(threads.end(), here.begin(), here.end());
  if (depth >= kDeepestBelow) return;
  for (const std::string& name : list_directories(directory)) {
    collect_threads(directory / name, file, threads, depth + 1);
  }
}

std::optional<fs::path> quota_file(const Hierarchy& hierarchy, const fs::path& directory) {
  if (hierarchy.kind != CgroupKind::kV1) return directory / "cpu.max";
  if (hierarchy.cpu.empty()) return std::nullopt;
  return hierarchy.cpu / directory.lexically_relative(hierarchy.root) / "cpu.cfs_quota_us";
}

/// No quota, in place of this one; of v2 the period stays: "max 100000".
std::string unlimited(const Hierarchy& hierarchy, const std::string& quota) {
  if (hierarchy.kind == CgroupKind::kV1) return "-1";
  const std::size_t space = quota.find(' ');
  return space == std::string::npos ? "max" : "max" + quota.substr(space);
}

}  // namespace

int set_cpuset(const Hierarchy& hierarchy, const fs::path& directory, const GuestCpuSet& cpus) {
  if (hierarchy.kind == CgroupKind::kV1) {
    if (const int error = prepare_v1(hierarchy, directory, cpus)) return error;
    return set_v1(directory, cpus);
  }
  if (const int error = prepare_v2(hierarchy, directory, cpus)) return error;
  return write_cpus(directory, cpus);
}

int clear_cpuset(const Hierarchy& hierarchy, const fs::path& directory, const GuestCpuSet& online) {
  if (hierarchy.kind == CgroupKind::kV1) return set_cpuset(hierarchy, directory, online);
  if (read_text(directory / "cpuset.cpus").value_or("").empty()) return 0;
  // Linux empties no cpuset that has threads (cpuset.c, validate_change).
  if (write_text(directory / "cpuset.cpus", "\n") == 0) return 0;
  return write_cpus(directory, online);
}

std::optional<GuestCpuSet> given_cpus(const fs::path& directory) {
  return read_cpus(directory / "cpuset.cpus");
}

std::optional<GuestCpuSet> effective_cpus(const Hierarchy& hierarchy, const fs::path& directory) {
  const char* file = base::effective_cpus_file(hierarchy.kind == CgroupKind::kV2 ? 2 : 1);
  if (auto cpus = read_cpus(directory / file)) return cpus;
  return given_cpus(directory);
}

std::vector<int> threads_of(const Hierarchy& hierarchy, const fs::path& directory) {
  std::error_code none;
  const bool v2 =
      hierarchy.kind == CgroupKind::kV2 ||
      (hierarchy.kind != CgroupKind::kV1 && fs::exists(directory / base::threads_file(2), none));
  std::vector<int> threads;
  collect_threads(directory, base::threads_file(v2 ? 2 : 1), threads,
                  hierarchy.kind == CgroupKind::kNone ? kDeepestBelow : 0);
  return threads;
}

std::optional<std::string> read_quota(const Hierarchy& hierarchy, const fs::path& directory) {
  const auto file = quota_file(hierarchy, directory);
  auto now = file ? read_text(*file) : std::nullopt;
  return now && *now != unlimited(hierarchy, *now) ? now : std::nullopt;
}

bool lift_quota(const Hierarchy& hierarchy, const fs::path& directory) {
  const auto file = quota_file(hierarchy, directory);
  const auto now = file ? read_text(*file) : std::nullopt;
  if (!now) return false;
  const std::string lifted = unlimited(hierarchy, *now);
  return *now == lifted || write_text(*file, lifted) == 0;
}

void restore_quota(const Hierarchy& hierarchy, const fs::path& directory,
                   const std::string& quota) {
  const auto file = quota_file(hierarchy, directory);
  const auto now = file ? read_text(*file) : std::nullopt;
  if (now && *now == unlimited(hierarchy, *now)) write_text(*file, quota);
}

}  // namespace ka::agent
