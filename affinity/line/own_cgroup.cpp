// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/own_cgroup.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "affinity/host/cgroup_names.hpp"
#include "base/process.hpp"
#include "base/thread_stats.hpp"
#include "vmm/threads.hpp"

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

/// By the rule that also decides, later, which processes of the cgroup are placed with the VM.
Result<void> check_members(const policy::ledger::PodRecord& pod, const fs::path& mount,
                           const fs::path& cgroup, const vmm::Roots& roots) {
  const vmm::Target target{.vmm = *pod.vmm,
                           .cgroup = mount / cgroup.relative_path(),
                           .proxy = pod.proxy,
                           .is_cgroup_named = true};
  base::ThreadStats stats(roots.proc);
  const auto seen =
      vmm::Discovery(roots, target).observe(nullptr, stats, [](const policy::ProcessId&) {
        return std::string();
      });
  if (is_gone(seen)) return {};
  if (!seen) return unseen(seen.error());
  if (seen->foreign.empty()) return {};
  return fail(ErrorCode::kInvalid,
              "cgroup: " + cgroup.string() + " is not the sandbox's own: " + seen->foreign.front());
}

/// The VMM's cgroups lie within the one that is named for it.
Result<void> check_inside(const std::vector<fs::path>& own, const fs::path& cgroup) {
  const auto is_in = [&](const fs::path& one) { return is_inside(one, cgroup); };
  if (own.empty() || std::ranges::any_of(own, is_in)) return {};
  return fail(ErrorCode::kInvalid,
              "cgroup: the VMM is not in " + cgroup.string() + " but in " + own.front().string());
}

/// A VMM in a cgroup that was named for another sandbox would be one of its helpers.
Result<void> check_claimed(const policy::ledger::PodRecord& pod, const std::vector<fs::path>& own,
                           const policy::ledger::Ledger& ledger) {
  for (const auto& [id, other] : ledger.pods()) {
    if (id == pod.id || other.cgroup.empty()) continue;
    const fs::path claimed = absolute(other.cgroup);
    const auto inside =
        std::ranges::find_if(own, [&](const fs::path& one) { return is_inside(one, claimed); });
    if (inside == own.end()) continue;
    return fail(ErrorCode::kConflict, "cgroup: " + inside->string() +
                                          ", where the VMM is, lies in " + claimed.string() +
                                          ", the cgroup of sandbox \"" + id + '"');
  }
  return {};
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

bool has_claims(const policy::ledger::PodRecord& pod, const policy::ledger::Ledger& ledger) {
  return std::ranges::any_of(ledger.pods(), [&](const auto& entry) {
    return entry.first != pod.id && !entry.second.cgroup.empty();
  });
}

}  // namespace

Result<void> check_own_cgroup(const policy::ledger::PodRecord& pod,
                              const policy::ledger::Ledger& ledger, const vmm::Roots& roots) {
  if (pod.cgroup.empty() && !has_claims(pod, ledger)) return {};
  const auto own = pod.vmm ? cgroups_of(roots, *pod.vmm) : std::vector<fs::path>{};
  if (!own) return unexpected(own.error());
  if (pod.cgroup.empty()) return check_claimed(pod, *own, ledger);
  const auto inside = fs::path(pod.cgroup).relative_path().lexically_normal();
  if (inside.empty() || inside == "." || *inside.begin() == "..") {
    return fail(ErrorCode::kInvalid,
                "cgroup: " + pod.cgroup + " is not a sandbox's own: it contains the whole machine");
  }
  const fs::path cgroup = absolute(pod.cgroup);
  const auto mount = mount_of(roots, cgroup);
  if (!mount) return unexpected(mount.error());
  if (auto good = check_others(pod, cgroup, ledger, roots); !good) return good;
  if (auto good = check_claimed(pod, *own, ledger); !good) return good;
  if (auto good = check_inside(*own, cgroup); !good) return good;
  return own->empty() ? Result<void>{} : check_members(pod, *mount, cgroup, roots);
}

}  // namespace ka::line
