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

Result<CgroupFacts> read_cgroup(const std::optional<Cgroups>& cgroups, int tid) {
  if (!cgroups) return CgroupFacts{};
  auto facts = cgroups->of_task(tid);
  const bool has_none = !facts && (is_gone(facts) || facts.error().code == ErrorCode::kNotFound);
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
  const bool has_ended = is_gone(directory);
  if (has_ended || (directory && *directory == of_vmm.directory)) return of_vmm;
  return directory ? cgroups->read(*directory) : unexpected(directory.error());
}

}  // namespace

fs::path inner_cgroup(const fs::path& container) {
  fs::path inner = crun_subgroup(container);
  std::error_code unreadable;
  return fs::is_directory(inner, unreadable) ? inner : fs::path();
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
  const auto before =
      std::exchange(by_pid_, {{vmm.pid, {of_vmm.cpuset_directory.string(), of_vmm.cpus}}});
  for (const ThreadFacts& thread : threads) {
    const int pid = thread.key.pid;
    if (by_pid_.contains(pid)) continue;
    auto facts = read_cgroup(cgroups, pid);
    if (facts) {
      by_pid_[pid] = {facts->cpuset_directory.string(), std::move(facts->cpus)};
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
  const auto is_as_read = [&](const std::string& directory, const CpuSet& cpus) {
    if (!cgroups || directory.empty() || cpus == online) return true;
    const auto now = cgroups->read(directory);
    return !now || now->cpus == cpus;
  };
  if (cpus_ && !is_as_read(directory_, *cpus_)) return false;
  return std::ranges::all_of(by_pid_, [&](const auto& entry) {
    const Place& place = entry.second;
    const bool is_done = cpus_ && place.directory == directory_;
    return is_done || is_as_read(place.directory, place.cpus);
  });
}

bool SandboxCgroups::is_bound_by(int pid, const std::string& directory) const {
  const auto found = by_pid_.find(pid);
  return found != by_pid_.end() && !found->second.directory.empty() &&
         found->second.directory == directory;
}

}  // namespace ka::host
