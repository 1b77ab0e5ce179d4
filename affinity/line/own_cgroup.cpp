// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/own_cgroup.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "affinity/host/cgroup_names.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "vmm/procfs/relatives.hpp"

namespace ka::line {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;
using host::is_inside;

/// "/kubepods/pod1", however it was written.
fs::path absolute(const std::string& cgroup) {
  fs::path path = (fs::path("/") / fs::path(cgroup).relative_path()).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

/// What cannot be seen proves nothing.
auto unseen(const base::Error& error) {
  return fail(ErrorCode::kUnavailable, "cgroup: it cannot be examined: " + error.message);
}

/// Of a process or a thread, in the hierarchy that has the cpusets.
Result<fs::path> cgroup_of(const vmm::Roots& roots, int tid) {
  const base::ProcFs proc(roots.proc);
  auto path = proc.cgroup(tid, "cpuset");
  if (!path && path.error().code == ErrorCode::kNotFound) path = proc.cgroup(tid, "");
  if (!path) return unexpected(std::move(path.error()));
  return fs::path(*path);
}

/// With version 1 Kata moves only the vCPU threads. Those that have ended are left out, and so are
/// all where the kernel has no such cgroups.
Result<std::vector<fs::path>> cgroups_of(const vmm::Roots& roots, const policy::ProcessId& vmm) {
  const auto is_none = [](const base::Error& error) {
    return is_gone(error) || error.code == ErrorCode::kNotFound;
  };
  std::vector<fs::path> cgroups;
  const auto tids = base::ProcFs(roots.proc).threads(vmm.pid);
  if (!tids && !is_gone(tids)) return unseen(tids.error());
  for (const int tid : tids.value_or(std::vector<int>{})) {
    auto cgroup = cgroup_of(roots, tid);
    if (!cgroup && !is_none(cgroup.error())) return unseen(cgroup.error());
    if (cgroup) cgroups.push_back(std::move(*cgroup));
  }
  return cgroups;
}

Result<bool> is_there(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return S_ISDIR(status.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return unseen(base::system_error(errno, path.string()));
}

/// Where a hierarchy that has this cgroup is mounted. kInvalid: there is none.
Result<fs::path> mount_of(const vmm::Roots& roots, const fs::path& cgroup) {
  for (const char* below : {"cpuset", "unified", ""}) {
    fs::path mount = *below == 0 ? roots.cgroup : roots.cgroup / below;
    const auto found = is_there(mount / cgroup.relative_path());
    if (!found) return unexpected(found.error());
    if (*found) return mount;
  }
  return fail(ErrorCode::kInvalid,
              "cgroup: " + cgroup.string() + " does not exist below " + roots.cgroup.string());
}

/// The processes that may sit beside a VMM: itself, its shims, and what these have started.
class Family {
 public:
  static Result<Family> of(const vmm::Roots& roots, const policy::ProcessId& vmm) {
    const auto stat = base::ProcFs(roots.proc).stat(vmm.pid);
    if (!stat && !is_gone(stat)) return unseen(stat.error());
    base::Trouble trouble;
    const vmm::SeenProcess seen{.pid = vmm.pid, .ppid = stat ? stat->ppid : 0};
    auto members = vmm::shim_ancestors(roots.proc, seen, trouble);
    if (trouble.any()) return unseen(*trouble.any());
    members.push_back(vmm);
    return Family(roots.proc, std::move(members));
  }

  /// True of one that has ended, too.
  Result<bool> has(int pid) const {
    const auto line = vmm::ancestry(proc_, pid);
    if (is_gone(line)) return true;
    if (!line) return unseen(line.error());
    return std::ranges::any_of(*line, [&](const policy::ProcessId& one) {
      return std::ranges::find(members_, one) != members_.end();
    });
  }

 private:
  Family(fs::path proc, std::vector<policy::ProcessId> members)
      : proc_(std::move(proc)), members_(std::move(members)) {}

  fs::path proc_;
  std::vector<policy::ProcessId> members_;
};

struct Stranger {
  int pid = 0;
  fs::path cgroup;
};

/// 0: all of them belong to the family, or have ended.
Result<int> find_stranger_among(const std::vector<int>& pids, const Family& family) {
  for (const int pid : pids) {
    const auto is_own = family.has(pid);
    if (!is_own) return unexpected(is_own.error());
    if (!*is_own) return pid;
  }
  return 0;
}

/// In cgroups below `cgroup` where the VMM is not.
Result<std::optional<Stranger>> find_stranger(const fs::path& mount, const fs::path& cgroup,
                                              const std::vector<fs::path>& own,
                                              const Family& family) {
  const auto names = base::list_subdirectories(mount / cgroup.relative_path());
  if (!names && !is_gone(names)) return unseen(names.error());
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    const fs::path below = cgroup / name;
    const bool has_vmm =
        std::ranges::any_of(own, [&](const fs::path& one) { return is_inside(one, below); });
    if (has_vmm) {
      auto found = find_stranger(mount, below, own, family);
      if (!found || *found) return found;
      continue;
    }
    base::Trouble trouble;
    const auto members = vmm::cgroup_members(mount / below.relative_path(), trouble);
    if (trouble.any()) return unseen(*trouble.any());
    const auto stranger = find_stranger_among(members, family);
    if (!stranger) return unexpected(stranger.error());
    if (*stranger > 0) return Stranger{*stranger, below};
  }
  return std::nullopt;
}

Result<void> check_vmm(const policy::ledger::PodRecord& pod, const fs::path& mount,
                       const fs::path& cgroup, const vmm::Roots& roots) {
  const auto own = cgroups_of(roots, *pod.vmm);
  if (!own) return unexpected(own.error());
  if (own->empty()) return {};
  if (std::ranges::none_of(*own, [&](const fs::path& one) { return is_inside(one, cgroup); })) {
    return fail(ErrorCode::kInvalid, "cgroup: the VMM is not in " + cgroup.string() + " but in " +
                                         own->front().string());
  }
  const auto family = Family::of(roots, *pod.vmm);
  if (!family) return unexpected(family.error());
  const auto found = find_stranger(mount, cgroup, *own, *family);
  if (!found) return unexpected(found.error());
  if (!*found) return {};
  const Stranger& stranger = **found;
  return fail(ErrorCode::kInvalid, "cgroup: " + cgroup.string() +
                                       " is not the sandbox's own: process " +
                                       std::to_string(stranger.pid) + " in " +
                                       stranger.cgroup.string() + " does not belong to its VM");
}

/// A sandbox's helpers are the processes in its cgroup: another sandbox's vCPUs would be among
/// them.
Result<void> check_others(const policy::ledger::PodRecord& pod, const fs::path& cgroup,
                          const policy::ledger::Ledger& ledger, const vmm::Roots& roots) {
  for (const auto& [id, other] : ledger.pods()) {
    const bool is_same_vm = other.vmm == pod.vmm;  // which pod's that is, is decided elsewhere
    if (id == pod.id || !other.vmm || is_same_vm) continue;
    auto theirs = cgroups_of(roots, *other.vmm);
    if (!theirs) return unexpected(theirs.error());
    if (!other.cgroup.empty()) theirs->push_back(absolute(other.cgroup));
    const auto inside =
        std::ranges::find_if(*theirs, [&](const fs::path& one) { return is_inside(one, cgroup); });
    if (inside == theirs->end()) continue;
    return fail(ErrorCode::kConflict, "cgroup: " + cgroup.string() + " holds sandbox \"" + id +
                                          "\", which is in " + inside->string());
  }
  return {};
}

}  // namespace

Result<void> check_own_cgroup(const policy::ledger::PodRecord& pod,
                              const policy::ledger::Ledger& ledger, const vmm::Roots& roots) {
  if (pod.cgroup.empty()) return {};
  const auto inside = fs::path(pod.cgroup).relative_path().lexically_normal();
  if (inside.empty() || inside == "." || *inside.begin() == "..") {
    return fail(ErrorCode::kInvalid,
                "cgroup: " + pod.cgroup + " is not a sandbox's own: it contains the whole machine");
  }
  const fs::path cgroup = absolute(pod.cgroup);
  const auto mount = mount_of(roots, cgroup);
  if (!mount) return unexpected(mount.error());
  if (auto good = check_others(pod, cgroup, ledger, roots); !good) return good;
  return pod.vmm ? check_vmm(pod, *mount, cgroup, roots) : Result<void>{};
}

}  // namespace ka::line
