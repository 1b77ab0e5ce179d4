// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cgroup.hpp"

#include <optional>
#include <string>
#include <vector>

#include "base/cgroup_files.hpp"
#include "base/files.hpp"
#include "base/mounts.hpp"
#include "base/process.hpp"

namespace ka::host {
namespace {

using base::ErrorCode;
using base::Result;

Result<std::string> first_of(const std::filesystem::path& directory,
                             std::initializer_list<const char*> names) {
  Result<std::string> text = base::fail(ErrorCode::kGone, directory.string());
  for (const char* name : names) {
    text = base::read_file(directory / name);
    if (!is_gone(text)) break;
  }
  return text;
}

template <typename Tag>
Result<policy::IdSet<Tag>> read_set(const std::filesystem::path& directory,
                                    std::initializer_list<const char*> names) {
  const auto text = first_of(directory, names);
  if (!text) return unexpected(text.error());
  auto set = policy::parse_list<Tag>(*text);
  if (!set) return base::fail(ErrorCode::kInvalid, directory.string() + ": " + set.error().reason);
  return std::move(*set);
}

Result<policy::CpuSet> read_cpus(const std::filesystem::path& directory, int version) {
  // Version 1 of older kernels has no file for the effective set.
  using Tag = policy::CpuTag;
  const char* effective = base::effective_cpus_file(version);
  return version == 2 ? read_set<Tag>(directory, {effective})
                      : read_set<Tag>(directory, {effective, "cpuset.cpus"});
}

/// CPUs of the partition that the vCPUs have in their VMM's cgroup; empty: they have none. The
/// effective sets of that cgroup and of all above it are without them.
Result<policy::CpuSet> cpus_of_partition(const std::filesystem::path& vmm, int version) {
  if (version != 2) return {};
  auto cpus = read_cpus(vmm / base::kPartitionCgroup, version);
  return is_gone(cpus) ? policy::CpuSet{} : std::move(cpus);
}

/// The kernel takes the CPUs of a partition (cpuset.cpus.partition) from what is above it, and a
/// partition gets no others: Documentation/admin-guide/cgroup-v2.rst. Else a cgroup has a part of
/// what the one above it has.
bool is_partition(const policy::CpuSet& effective, const policy::CpuSet& above) {
  return !effective.subset_of(above);
}

}  // namespace

Result<Cgroups> Cgroups::find(const std::filesystem::path& proc) {
  const auto mounts = base::read_file(proc / "self" / "mountinfo");
  if (!mounts) return unexpected(mounts.error());
  const auto found = base::find_cpuset_hierarchy(base::parse_mounts(*mounts));
  if (!found) return unexpected(found.error());
  if (*found) return Cgroups((*found)->version, (*found)->mount, proc);
  return base::fail(ErrorCode::kUnavailable, "no cgroup hierarchy has the cpuset controller");
}

Result<std::filesystem::path> Cgroups::directory_of(int tid) const {
  const auto path = base::ProcFs(proc_).cgroup(tid, version_ == 2 ? "" : "cpuset");
  if (!path) return unexpected(path.error());
  const auto below = std::filesystem::path(*path).relative_path();
  return below.empty() ? mount_ : mount_ / below;
}

Result<CgroupFacts> Cgroups::of_task(int tid) const {
  const auto directory = directory_of(tid);
  if (!directory) return unexpected(directory.error());
  return read(*directory);
}

/// Version 2 has the files only where the parent hands the controller down; what is in force below
/// is what the nearest ancestor with the files says (Documentation/admin-guide/cgroup-v2.rst).
Result<CgroupFacts> Cgroups::read(const std::filesystem::path& directory) const {
  std::filesystem::path with_files = directory;
  auto cpus = read_cpus(with_files, version_);
  while (is_gone(cpus) && with_files != mount_ && with_files.has_relative_path()) {
    with_files = with_files.parent_path();
    cpus = read_cpus(with_files, version_);
  }
  if (!cpus) return unexpected(std::move(cpus.error()));
  const auto apart = cpus_of_partition(with_files, version_);
  if (!apart) return unexpected(apart.error());
  return CgroupFacts{with_files, directory, *cpus | *apart};
}

Result<policy::plan::Cpuset> Cgroups::cpuset(const std::filesystem::path& directory) const {
  auto configured = read_set<policy::CpuTag>(directory, {"cpuset.cpus"});
  if (!configured) return unexpected(std::move(configured.error()));
  auto above = read(directory.parent_path());
  if (!above) return unexpected(std::move(above.error()));
  auto apart = cpus_of_partition(directory, version_);
  if (!apart) return unexpected(std::move(apart.error()));
  const auto own = read_cpus(directory, version_);
  if (!own) return unexpected(own.error());
  const policy::CpuSet bound = is_partition(*own, above->cpus) ? *own : above->cpus;
  return policy::plan::Cpuset{std::move(*configured), bound | *apart, std::move(*apart)};
}

Result<policy::NodeSet> Cgroups::memory_nodes(const std::filesystem::path& directory) const {
  return read_set<policy::NodeTag>(directory, {"cpuset.mems.effective"});
}

}  // namespace ka::host
