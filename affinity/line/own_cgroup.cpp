// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/own_cgroup.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
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

/// Of a process or a thread, in the hierarchy that has the cpusets.
std::optional<fs::path> cgroup_of(const vmm::Roots& roots, int tid) {
  const base::ProcFs proc(roots.proc);
  for (const char* controller : {"cpuset", ""}) {
    if (const auto path = proc.cgroup(tid, controller)) return fs::path(*path);
  }
  return std::nullopt;
}

/// With version 1 Kata moves only the vCPU threads.
std::vector<fs::path> cgroups_of(const vmm::Roots& roots, const policy::ProcessId& vmm) {
  std::vector<fs::path> cgroups;
  for (const int tid : base::ProcFs(roots.proc).threads(vmm.pid).value_or(std::vector<int>{})) {
    if (auto cgroup = cgroup_of(roots, tid)) cgroups.push_back(std::move(*cgroup));
  }
  return cgroups;
}

/// Where a hierarchy that has this cgroup is mounted.
std::optional<fs::path> mount_of(const vmm::Roots& roots, const fs::path& cgroup) {
  for (const char* below : {"cpuset", "unified", ""}) {
    fs::path mount = *below == 0 ? roots.cgroup : roots.cgroup / below;
    std::error_code ignored;
    if (fs::is_directory(mount / cgroup.relative_path(), ignored)) return mount;
  }
  return std::nullopt;
}

/// The processes that may sit beside a VMM: itself, its shims, and what these have started.
class Family {
 public:
  Family(const vmm::Roots& roots, const policy::ProcessId& vmm) : proc_(roots.proc) {
    members_.push_back(vmm.pid);
    const auto stat = proc_.stat(vmm.pid);
    if (!stat) return;
    base::Trouble ignored;
    const vmm::SeenProcess seen{.pid = vmm.pid, .ppid = stat->ppid};
    for (const auto& shim : vmm::shim_ancestors(roots.proc, seen, ignored)) {
      members_.push_back(shim.pid);
    }
  }

  bool has(int pid) const {
    constexpr int kMostGenerations = 16;
    for (int i = 0; pid > 1 && i < kMostGenerations; ++i) {
      if (std::ranges::find(members_, pid) != members_.end()) return true;
      const auto stat = proc_.stat(pid);
      if (!stat) return true;  // it has ended
      pid = stat->ppid;
    }
    return false;
  }

 private:
  base::ProcFs proc_;
  std::vector<int> members_;
};

struct Stranger {
  int pid = 0;
  fs::path cgroup;
};

/// In cgroups below `cgroup` where the VMM is not.
std::optional<Stranger> find_stranger(const fs::path& mount, const fs::path& cgroup,
                                      const std::vector<fs::path>& own, const Family& family) {
  std::error_code error;
  const fs::path directory = mount / cgroup.relative_path();
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_directory(ignored)) continue;
    const fs::path below = cgroup / it->path().filename();
    const bool has_vmm =
        std::ranges::any_of(own, [&](const fs::path& one) { return is_inside(one, below); });
    if (has_vmm) {
      if (auto found = find_stranger(mount, below, own, family)) return found;
      continue;
    }
    base::Trouble unread;
    const auto members = vmm::cgroup_members(it->path(), unread);
    const auto found = std::ranges::find_if(members, [&](int pid) { return !family.has(pid); });
    if (found != members.end()) return Stranger{*found, below};
  }
  return std::nullopt;
}

Result<void> check_vmm(const policy::ledger::PodRecord& pod, const fs::path& mount,
                       const fs::path& cgroup, const vmm::Roots& roots) {
  const auto own = cgroups_of(roots, *pod.vmm);
  if (own.empty()) return {};
  if (std::ranges::none_of(own, [&](const fs::path& one) { return is_inside(one, cgroup); })) {
    return fail(ErrorCode::kInvalid,
                "cgroup: the VMM is not in " + cgroup.string() + " but in " + own.front().string());
  }
  const auto stranger = find_stranger(mount, cgroup, own, Family(roots, *pod.vmm));
  if (!stranger) return {};
  return fail(ErrorCode::kInvalid, "cgroup: " + cgroup.string() +
                                       " is not the sandbox's own: process " +
                                       std::to_string(stranger->pid) + " in " +
                                       stranger->cgroup.string() + " does not belong to its VM");
}

/// A sandbox's helpers are the processes in its cgroup: another sandbox's vCPUs would be among
/// them.
Result<void> check_others(const policy::ledger::PodRecord& pod, const fs::path& cgroup,
                          const policy::ledger::Ledger& ledger, const vmm::Roots& roots) {
  for (const auto& [id, other] : ledger.pods()) {
    const bool is_same_vm = other.vmm == pod.vmm;  // which pod's that is, is decided elsewhere
    if (id == pod.id || !other.vmm || is_same_vm) continue;
    std::vector<fs::path> theirs = cgroups_of(roots, *other.vmm);
    if (!other.cgroup.empty()) theirs.push_back(absolute(other.cgroup));
    const auto inside =
        std::ranges::find_if(theirs, [&](const fs::path& one) { return is_inside(one, cgroup); });
    if (inside == theirs.end()) continue;
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
  if (!mount) {
    return fail(ErrorCode::kInvalid,
                "cgroup: " + pod.cgroup + " does not exist below " + roots.cgroup.string());
  }
  if (auto good = check_others(pod, cgroup, ledger, roots); !good) return good;
  return pod.vmm ? check_vmm(pod, *mount, cgroup, roots) : Result<void>{};
}

}  // namespace ka::line
