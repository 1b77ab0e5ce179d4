// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/sandbox_cgroup.hpp"

#include <algorithm>
#include <utility>

#include "affinity/host/cgroup_names.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using policy::CpuSet;
using policy::ThreadFacts;

constexpr std::string_view kScope = ".scope", kSlice = ".slice";

/// systemd nests slices by the dashes in their names: a-b.slice lies in a.slice.
fs::path slice_path(std::string name) {
  if (name.ends_with(kSlice)) name.resize(name.size() - kSlice.size());
  fs::path path;
  for (std::size_t dash = name.find('-'); dash != std::string::npos;
       dash = name.find('-', dash + 1)) {
    if (dash > 0) path /= name.substr(0, dash) + std::string(kSlice);
  }
  return name.empty() || name == "-" ? path : path / (name + std::string(kSlice));
}

Result<CgroupFacts> read_cgroup(const std::optional<Cgroups>& cgroups, int tid) {
  if (!cgroups) return CgroupFacts{};
  auto facts = cgroups->of_task(tid);
  const bool has_none = !facts && (facts.error().code == ErrorCode::kGone ||
                                   facts.error().code == ErrorCode::kNotFound);
  return has_none ? CgroupFacts{} : facts;
}

int any_vcpu(const std::vector<ThreadFacts>& threads, int vmm) {
  const auto vcpu = std::ranges::find(threads, policy::Role::kVcpu, &ThreadFacts::role);
  return vcpu == threads.end() ? vmm : vcpu->key.tid;
}

/// With version 1 Kata moves only the vCPU threads into the sandbox cgroup.
Result<CgroupFacts> read_cgroup_of_vcpus(const std::optional<Cgroups>& cgroups,
                                         const VmmProcess& vmm, const CgroupFacts& of_vmm,
                                         const std::vector<ThreadFacts>& threads) {
  if (vmm.is_domain || !cgroups || cgroups->version() != 1) return of_vmm;
  const auto directory = cgroups->directory_of(any_vcpu(threads, vmm.pid));
  const bool has_ended = !directory && directory.error().code == ErrorCode::kGone;
  if (has_ended || (directory && *directory == of_vmm.directory)) return of_vmm;
  return directory ? cgroups->read(*directory) : unexpected(directory.error());
}

}  // namespace

std::string pod_uid_of(const fs::path& directory) {
  constexpr std::string_view kPod = "pod", kPods = "kubepods";
  bool is_kubelets = false;
  for (const fs::path& part : directory) {
    std::string_view name = part.native();
    if (name.ends_with(kSlice)) name.remove_suffix(kSlice.size());
    const std::size_t at = name.starts_with(kPod) ? 0 : name.rfind("-pod");
    is_kubelets |= name.starts_with(kPods);
    if (!is_kubelets || at == std::string_view::npos) continue;
    name.remove_prefix(at + kPod.size() + (at == 0 ? 0 : 1));
    std::string uid(name.substr(0, name.find_first_of(".:")));
    std::ranges::replace(uid, '_', '-');
    return uid;
  }
  return {};
}

bool is_systemd_unit(const fs::path& directory) {
  const std::string& path = directory.native();
  return path.find(kSlice) != std::string::npos || path.find(kScope) != std::string::npos;
}

fs::path own_cgroup(std::string_view sandbox, const fs::path& named, const fs::path& of_vmm,
                    const fs::path& mount) {
  const fs::path directory = named.empty() ? of_vmm : mount / named.relative_path();
  const fs::path below = directory.lexically_normal().lexically_relative(mount);
  if (below.empty() || below == "." || *below.begin() == "..") return {};
  const auto is_own = [&](const fs::path& part) { return is_named_after(part.native(), sandbox); };
  return !named.empty() || std::ranges::any_of(below, is_own) ? directory : fs::path();
}

fs::path container_cgroup(const std::string& named, std::string_view container,
                          const fs::path& mount) {
  const std::size_t first = named.find(':');
  const std::size_t last = named.rfind(':');
  fs::path below = fs::path(named).relative_path();
  if (first != std::string::npos) {
    if (first == last) return {};
    const std::string prefix = named.substr(first + 1, last - first - 1);
    below = slice_path(named.substr(0, first)) /
            (prefix + (prefix.empty() ? "" : "-") + named.substr(last + 1) + std::string(kScope));
  }
  below = below.lexically_normal();
  if (below.empty() || *below.begin() == "..") return {};
  return is_named_after(below.filename().native(), container) ? mount / below : fs::path();
}

fs::path inner_cgroup(const fs::path& container) {
  if (container.extension() != kScope) return {};
  fs::path inner = container / "container";
  std::error_code unreadable;
  return fs::is_directory(inner, unreadable) ? inner : fs::path();
}

fs::path domain_cgroup(fs::path directory) {
  const auto is_threads = [](const std::string& name) {
    return name == "emulator" || name.starts_with("vcpu") || name.starts_with("iothread");
  };
  if (is_threads(directory.filename())) directory = directory.parent_path();
  if (directory.filename() == "libvirt") directory = directory.parent_path();
  return directory;
}

bool is_inside(const fs::path& directory, const fs::path& above) {
  const fs::path below = directory.lexically_relative(above);
  return !below.empty() && *below.begin() != "..";
}

Result<CgroupFacts> read_vmm_cgroup(const std::optional<Cgroups>& cgroups, const VmmProcess& vmm) {
  auto facts = read_cgroup(cgroups, vmm.pid);
  if (!facts || !vmm.is_domain || facts->directory.empty()) return facts;
  return cgroups->read(domain_cgroup(facts->directory));
}

Result<void> SandboxCgroups::read(const std::optional<Cgroups>& cgroups, const VmmProcess& vmm,
                                  const CgroupFacts& of_vmm,
                                  const std::vector<ThreadFacts>& threads) {
  Result<void> done;
  const auto before = std::exchange(by_pid_, {{vmm.pid, {of_vmm.cpuset_directory, of_vmm.cpus}}});
  for (const ThreadFacts& thread : threads) {
    const int pid = thread.key.pid;
    if (by_pid_.contains(pid)) continue;
    auto facts = read_cgroup(cgroups, pid);
    if (facts) {
      by_pid_[pid] = {std::move(facts->cpuset_directory), std::move(facts->cpus)};
      continue;
    }
    if (done) done = unexpected(facts.error());
    const auto known = before.find(pid);
    by_pid_[pid] = known == before.end() ? Place{} : Place{{}, known->second.cpus};
  }
  const auto of_vcpus = read_cgroup_of_vcpus(cgroups, vmm, of_vmm, threads);
  if (!of_vcpus) return done ? unexpected(of_vcpus.error()) : done;
  directory_ = of_vcpus->cpuset_directory.string();
  cpus_.reset();
  if (!of_vcpus->cpus.empty()) cpus_ = of_vcpus->cpus;
  return done;
}

const CpuSet* SandboxCgroups::allowed(int pid) const {
  const auto found = by_pid_.find(pid);
  return found == by_pid_.end() || found->second.cpus.empty() ? nullptr : &found->second.cpus;
}

/// What the kernel changes itself, as where a CPU came back online, no watch reports.
bool SandboxCgroups::are_as_read(const std::optional<Cgroups>& cgroups,
                                 const CpuSet& online) const {
  const auto is_as_read = [&](const fs::path& directory, const CpuSet& cpus) {
    if (!cgroups || directory.empty() || cpus == online) return true;
    const auto now = cgroups->read(directory);
    return !now || now->cpus == cpus;
  };
  if (cpus_ && !is_as_read(directory_, *cpus_)) return false;
  return std::ranges::all_of(by_pid_, [&](const auto& entry) {
    const Place& place = entry.second;
    const bool is_done = cpus_ && place.directory.native() == directory_;
    return is_done || is_as_read(place.directory, place.cpus);
  });
}

bool SandboxCgroups::is_bound_by(int pid, const fs::path& directory) const {
  const auto found = by_pid_.find(pid);
  return found != by_pid_.end() && !found->second.directory.empty() &&
         found->second.directory == directory;
}

}  // namespace ka::host
