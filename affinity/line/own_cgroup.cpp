// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/own_cgroup.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "affinity/host/cgroup_names.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "vmm/procfs/kvm_fds.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/vhost_user.hpp"

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

/// At the other ends of its unix sockets. Empty without the privilege to see that.
Result<std::vector<int>> peers_of(const vmm::Roots& roots, const policy::ProcessId& vmm) {
  base::Trouble trouble;
  const auto fds = vmm::read_fds(roots.proc, vmm.pid);
  trouble.record(fds);
  auto peers = vmm::unix_peers(roots.proc, vmm.pid, fds.value_or(vmm::OpenFds{}).sockets, trouble);
  if (trouble.passing()) return unseen(*trouble.passing());
  return peers;
}

bool is_kernel_thread(const fs::path& proc, const std::vector<policy::ProcessId>& line) {
  constexpr int kKthreadd = 2;
  return line.size() == 2 && line.back().pid == kKthreadd &&
         vmm::program_name(proc, line.front().pid).empty();
}

/// The processes that may sit beside a VMM: itself, its shims, what these have started, and what
/// serves the VM.
class Family {
 public:
  static Result<Family> of(const vmm::Roots& roots, const policy::ProcessId& vmm) {
    const auto stat = base::ProcFs(roots.proc).stat(vmm.pid);
    auto peers = peers_of(roots, vmm);
    if (!stat && !is_gone(stat)) return unseen(stat.error());
    if (!peers) return unexpected(peers.error());
    base::Trouble trouble;
    const vmm::SeenProcess seen{.pid = vmm.pid, .ppid = stat ? stat->ppid : 0};
    auto members = vmm::shim_ancestors(roots.proc, seen, trouble);
    if (trouble.any()) return unseen(*trouble.any());
    members.push_back(vmm);
    return Family(roots.proc, std::move(members), std::move(*peers));
  }

  /// True of one that has ended, and of a kernel thread.
  Result<bool> has(int pid) const {
    const auto line = vmm::ancestry(proc_, pid);
    if (is_gone(line)) return true;
    if (!line) return unseen(line.error());
    if (std::ranges::binary_search(peers_, pid) || is_kernel_thread(proc_, *line)) return true;
    return std::ranges::any_of(*line, [&](const policy::ProcessId& one) {
      return std::ranges::find(members_, one) != members_.end();
    });
  }

 private:
  Family(fs::path proc, std::vector<policy::ProcessId> members, std::vector<int> peers)
      : proc_(std::move(proc)), members_(std::move(members)), peers_(std::move(peers)) {}

  fs::path proc_;
  std::vector<policy::ProcessId> members_;
  std::vector<int> peers_;
};

/// Of the processes in a cgroup, one that is none of the family; 0: there is none.
Result<int> find_stranger(const fs::path& directory, const Family& family) {
  base::Trouble trouble;
  const auto members = vmm::cgroup_members(directory, trouble);
  if (trouble.any()) return unseen(*trouble.any());
  for (const int pid : members) {
    const auto is_own = family.has(pid);
    if (!is_own) return unexpected(is_own.error());
    if (!*is_own) return pid;
  }
  return 0;
}

Result<void> check_members(const policy::ledger::PodRecord& pod, const fs::path& mount,
                           const fs::path& cgroup, const vmm::Roots& roots) {
  const auto family = Family::of(roots, *pod.vmm);
  if (!family) return unexpected(family.error());
  const auto stranger = find_stranger(mount / cgroup.relative_path(), *family);
  if (!stranger) return unexpected(stranger.error());
  if (*stranger == 0) return {};
  const auto place = cgroup_of(roots, *stranger);
  return fail(ErrorCode::kInvalid,
              "cgroup: " + cgroup.string() + " is not the sandbox's own: process " +
                  std::to_string(*stranger) + (place ? " in " + place->string() : std::string()) +
                  " was not started by its VMM or its shim");
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
