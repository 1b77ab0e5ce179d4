// SPDX-License-Identifier: Apache-2.0
// What the daemon writes to cgroups (cgroup = "manage"), and what it gives back.
#include <filesystem>

#include "tests/property/model/play.hpp"

namespace ka::model {

using policy::CpuSet;

namespace {

std::string list(const CpuSet& cpus) { return policy::format_list(cpus); }

std::string pod_of(const std::string& cgroup) { return std::filesystem::path(cgroup).filename(); }

}  // namespace

void Play::watch_cgroups() {
  kernel_.cpusets.before_write = [this](const std::string& cgroup) {
    before_cgroup_write(pod_of(cgroup));
    count_down();
  };
  kernel_.cpusets.after_write = [this](const std::string& cgroup) {
    check_cgroup_write(pod_of(cgroup));
  };
}

/// Kata writes what the containers may use. The daemon's watch tells of it at once, or it is busy.
void Play::confine(const Pod& pod, bool is_noticed) {
  if (!kernel_.confine(pod)) return;
  const auto written = cgroups_.find(pod.id);
  if (written != cgroups_.end() && released_.contains(pod.id)) written->second.ours.reset();
  if (!is_noticed || !manages()) return;
  const std::string directory = kernel_.directory_of(pod.id);
  guarded({}, [&] { kernel_.line().cgroup_written(directory); });
}

void Play::before_cgroup_write(const std::string& id) {
  cgroup_before_ = kernel_.cgroup(id);
  if (!released_.contains(id)) {
    ManagedCgroup& cgroup = cgroups_[id];
    if (cgroup.ours != cgroup_before_) cgroup.theirs = cgroup_before_;
  }
  masks_before_.clear();
  const Pod* pod = world_.find(id);
  if (pod == nullptr || pod->pid == 0) return;
  for (const int tid : kernel_.threads_of(pod->pid)) {
    masks_before_[tid] = kernel_.calls.effective(tid);
  }
}

/// I2, whatever the kernel makes of the masks of its threads.
void Play::check_cgroup_write(const std::string& id) {
  ++writes_;
  kernel_.mirror_cgroup(id);
  const std::string what = "a write to the cgroup of " + id + " let a thread onto ";
  for (const auto& [tid, before] : masks_before_) {
    const CpuSet gained = kernel_.calls.effective(tid) - before;
    const CpuSet foreign = gained & knowledge_.foreign_to(id);
    if (gained.empty()) continue;
    if (!knowledge_.owners_are_known()) report_failure(what + list(gained) + ", of nobody knows");
    if (!foreign.empty()) report_failure(what + list(foreign) + ", which is another pod's (I2)");
  }
  if (released_.contains(id)) return check_given_back(id);
  cgroups_[id].ours = kernel_.cgroup(id);
}

/// What others wrote last, without what is another pod's by now, and maybe without what a pod owns
/// whose VMM has ended unreported. All CPUs are no limit, as none is.
void Play::check_given_back(const std::string& id) {
  const auto [found, is_new] = cgroups_.try_emplace(id);
  ManagedCgroup& cgroup = found->second;
  if (is_new) {
    report_failure("the cgroup of " + id + ", which is not managed, is written: " +
                   list(kernel_.cgroup(id)) + " in place of " + list(cgroup_before_));
  }
  const CpuSet& online = kernel_.online();
  const CpuSet now = kernel_.cgroup(id);
  const CpuSet all = cgroup.theirs.empty() ? online : cgroup.theirs & online;
  const CpuSet left = all - knowledge_.foreign_to(id);
  const CpuSet least = all - knowledge_.perhaps_kept_from(id);
  const bool is_theirs = now == cgroup.theirs && left == all;
  const bool is_kept = least.empty() && now == cgroup_before_;
  const bool is_right = least.subset_of(now) && (now & online).subset_of(left);
  if (!is_kept && !is_theirs && !is_right) {
    report_failure("the cgroup of " + id + " is given back with " + list(now) +
                   ", and others wrote " + list(cgroup.theirs));
  }
  cgroup.ours.reset();
}

/// At rest, of a released pod.
void Play::check_cgroup_is_theirs(const std::string& id) {
  ManagedCgroup& cgroup = cgroups_[id];
  if (cgroup.ours && kernel_.cgroup(id) == *cgroup.ours) {
    report_failure(id + " was released, and its cgroup has " + list(*cgroup.ours) +
                   ", which the daemon wrote");
  }
  cgroup.ours.reset();
}

/// At rest, of any other: threads are born into it.
void Play::check_cgroup(const std::string& id, const CpuSet& foreign) {
  const CpuSet on = kernel_.allowed(world_.find(id)->pid) & foreign;
  if (on.empty() || is_trapped(id)) return;
  report_failure("the cgroup of " + id + " has " + list(on) + ", which is another pod's (I2)");
}

}  // namespace ka::model
