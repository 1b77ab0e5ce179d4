#include "guest-agent/agent/containers.hpp"

#include <algorithm>

#include "guest-agent/agent/cpuset.hpp"
#include "guest-agent/agent/files.hpp"
#include "guest-agent/protocol/limits.hpp"

namespace ka::agent {
namespace {

using policy::GuestCpuSet;
using policy::GuestProblem;

/// Threads are born while they are placed; a pass that finds nothing to do is the last.
constexpr int kMostPasses = 8;

bool has_cpusets(const Hierarchy& hierarchy) {
  return hierarchy.kind == CgroupKind::kV1 || hierarchy.kind == CgroupKind::kV2;
}

policy::GuestMethod method_of(const Hierarchy& hierarchy) {
  switch (hierarchy.kind) {
    case CgroupKind::kV2:
      return policy::GuestMethod::kCgroupV2;
    case CgroupKind::kV1:
      return policy::GuestMethod::kCgroupV1;
    case CgroupKind::kOther:
      return policy::GuestMethod::kAffinity;
    case CgroupKind::kNone:
      break;
  }
  return policy::GuestMethod::kNone;
}

}  // namespace

std::vector<policy::GuestContainerState> Containers::place(
    const Hierarchy& hierarchy, const Tree& tree, const policy::GuestWishes& wishes,
    const policy::GuestPlacement& placement) {
  by_threads_ = hierarchy.kind == CgroupKind::kOther;
  for (const auto& [id, directory] : tree.containers) {
    leave(hierarchy, directory, placement.containers.at(id));
  }
  for (const auto& stranger : tree.strangers) enter(hierarchy, stranger, placement.common);
  std::vector<policy::GuestContainerState> states;
  for (const policy::GuestContainer& wish : wishes.containers) {
    policy::GuestContainerState& state = states.emplace_back();
    state.id = wish.id;
    state.wanted = placement.containers.at(wish.id);
    const auto found = tree.containers.find(wish.id);
    if (found == tree.containers.end()) {
      state.problem = GuestProblem::kNotFound;
      continue;
    }
    const int error = enter(hierarchy, found->second, state.wanted);
    state.quota_lifted = lift_quota(hierarchy, found->second, wish.lift_quota, quotas_[wish.id]);
    state.method = method_of(hierarchy);
    read_back(hierarchy, found->second, state);
    const auto problem = placement.problems.find(wish.id);
    if (problem != placement.problems.end()) state.problem = problem->second;
    if (state.outside > 0) state.problem = GuestProblem::kThreadsOutside;
    if (error != 0 || (has_cpusets(hierarchy) && state.actual != state.wanted)) {
      state.problem = GuestProblem::kRefused;
    }
  }
  std::erase_if(given_, [](const auto& known) {
    std::error_code none;
    return !std::filesystem::exists(known.first, none);
  });
  return states;
}

void Containers::release(const Hierarchy& hierarchy, const Tree& tree, const GuestCpuSet& online) {
  by_threads_ = false;
  for (const auto& [id, directory] : tree.containers) {
    lift_quota(hierarchy, directory, false, quotas_[id]);
  }
  for (const auto& [directory, given] : given_) {
    if (has_cpusets(hierarchy)) {
      clear_cpuset(hierarchy, directory, online);
    } else {
      place_threads(hierarchy, directory, online);
    }
  }
  given_.clear();
  quotas_.clear();
}

/// Takes the cgroup off what it is not to have any more, before others are let onto it.
void Containers::leave(const Hierarchy& hierarchy, const Path& directory, const GuestCpuSet& cpus) {
  const auto given = given_.find(directory);
  if (given == given_.end() || given->second.subset_of(cpus)) return;
  const GuestCpuSet kept = given->second & cpus;
  if (!kept.empty()) enter(hierarchy, directory, kept);
}

int Containers::enter(const Hierarchy& hierarchy, const Path& directory, const GuestCpuSet& cpus) {
  if (!has_cpusets(hierarchy)) return place_threads(hierarchy, directory, cpus);
  given_[directory] = cpus;
  return set_cpuset(hierarchy, directory, cpus);
}

/// A thread that confined itself further stays as it is, unless that is what it was given before.
int Containers::place_threads(const Hierarchy& hierarchy, const Path& directory,
                              const GuestCpuSet& cpus) {
  const GuestCpuSet before = std::exchange(given_[directory], cpus);
  int error = 0;
  bool changed = true;
  for (int pass = 0; pass < kMostPasses && changed; ++pass) {
    changed = false;
    for (const int tid : threads_of(hierarchy, directory)) {
      const auto has = calls_.affinity(tid);
      if (!has || *has == cpus || (has->subset_of(cpus) && *has != before)) continue;
      const int failed = calls_.set_affinity(tid, cpus);
      if (failed == 0) changed = true;
      if (failed != 0 && failed != ESRCH) error = failed;
    }
  }
  return error;
}

void Containers::read_back(const Hierarchy& hierarchy, const Path& directory,
                           policy::GuestContainerState& state) const {
  GuestCpuSet used;
  for (const int tid : threads_of(hierarchy, directory)) {
    const auto cpus = calls_.affinity(tid);
    if (!cpus) continue;
    ++state.threads;
    used |= *cpus;
    if (!cpus->subset_of(state.wanted)) ++state.outside;
  }
  state.actual =
      has_cpusets(hierarchy) ? effective_cpus(hierarchy, directory).value_or(GuestCpuSet{}) : used;
  for (const int pid : read_numbers(directory / "cgroup.procs")) {
    if (state.processes.size() == guest::kMaxProcesses) break;
    state.processes.push_back(read_process(pid));
  }
  std::ranges::sort(state.processes, {}, &policy::GuestProcess::pid);
}

policy::GuestProcess Containers::read_process(int pid) const {
  const Path process = roots_.proc / std::to_string(pid);
  policy::GuestProcess told{.pid = pid, .name = read_text(process / "comm").value_or("")};
  for (const int tid : list_numbers(process / "task")) {
    const auto cpus = calls_.affinity(tid);
    if (!cpus) continue;
    ++told.threads;
    told.cpus |= *cpus;
  }
  return told;
}

}  // namespace ka::agent
