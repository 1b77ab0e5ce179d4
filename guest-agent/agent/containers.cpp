// SPDX-License-Identifier: Apache-2.0
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

/// A container that was as it is asked for, and nothing says that it is not any more. A quota that
/// is lifted may be back: no event reports that on cgroup v1.
bool holds(const policy::GuestContainerState& state, const policy::GuestContainer& requested,
           const GuestCpuSet& wanted) {
  return state.wanted == wanted && state.actual == wanted && state.outside == 0 &&
         !state.quota_lifted && !requested.lift_quota;
}

/// Why a container runs on other vCPUs than its own.
void add_problem(const policy::plan::GuestPlacement& placement,
                 policy::GuestContainerState& state) {
  const bool is_elsewhere = state.problem == GuestProblem::kNotFound ||
                            state.problem == GuestProblem::kRefused ||
                            state.problem == GuestProblem::kThreadsOutside;
  if (is_elsewhere) return;
  const auto known = placement.problems.find(state.id);
  state.problem = known == placement.problems.end() ? GuestProblem::kNone : known->second;
}

}  // namespace

Containers::States Containers::place(const Hierarchy& hierarchy, const Tree& tree,
                                     const States& known, const policy::GuestSpec& spec,
                                     const policy::plan::GuestPlacement& placement) {
  adopt();
  by_threads_ = hierarchy.kind == CgroupKind::kOther;
  ways_are_known_ = !known.empty() && has_cpusets(hierarchy);
  for (const auto& [id, directory] : tree.containers) {
    narrow(hierarchy, directory, placement.containers.at(id));
  }
  for (const auto& stranger : tree.strangers) {
    set_cpus(hierarchy, stranger, placement.common);
    lift(hierarchy, stranger, false);
  }
  States states;
  for (const policy::GuestContainer& requested : spec.containers) {
    const GuestCpuSet& wanted = placement.containers.at(requested.id);
    const auto before = std::ranges::find(known, requested.id, &policy::GuestContainerState::id);
    const bool stays =
        ways_are_known_ && before != known.end() && holds(*before, requested, wanted);
    states.push_back(stays ? *before : place_one(hierarchy, tree, requested, wanted));
    add_problem(placement, states.back());
  }
  if (known.empty()) forget_gone();
  return states;
}

/// What an agent that was killed has placed is given back on release, too.
void Containers::adopt() {
  if (std::exchange(is_adopted_, true)) return;
  for (const PlacedCgroup& placed : record_.load()) {
    const auto [at, is_first] = given_.try_emplace(placed.directory, Given{.cpus = placed.cpus});
    if (!is_first) at->second.earlier.push_back(placed.cpus);
    if (!placed.quota.empty()) quotas_[placed.directory] = placed.quota;
  }
}

/// Before what it names is changed. Of each cgroup what it is given comes first.
void Containers::save() {
  std::vector<PlacedCgroup> placed;
  for (const auto& [directory, given] : given_) {
    const auto quota = quotas_.find(directory);
    placed.push_back({directory, given.cpus, quota == quotas_.end() ? "" : quota->second});
    for (const GuestCpuSet& cpus : given.earlier) placed.push_back({directory, cpus, ""});
  }
  record_.save(placed);
}

void Containers::forget_gone() {
  const auto is_gone = [](const auto& known) {
    std::error_code none;
    return !std::filesystem::exists(known.first, none);
  };
  std::erase_if(given_, is_gone);
  std::erase_if(quotas_, is_gone);
}

policy::GuestContainerState Containers::place_one(const Hierarchy& hierarchy, const Tree& tree,
                                                  const policy::GuestContainer& requested,
                                                  const GuestCpuSet& wanted) {
  const auto found = tree.containers.find(requested.id);
  if (found == tree.containers.end()) {
    return {.id = requested.id, .wanted = wanted, .problem = GuestProblem::kNotFound};
  }
  const Path& directory = found->second;
  policy::GuestContainerState state{
      .id = requested.id, .wanted = wanted, .method = method_of(hierarchy)};
  int error = set_cpus(hierarchy, directory, wanted);
  state.quota_lifted = lift(hierarchy, directory, requested.lift_quota);
  read_back(hierarchy, directory, state);
  const auto is_refused = [&] {
    return error != 0 || (has_cpusets(hierarchy) && state.actual != state.wanted);
  };
  if (is_refused() && std::exchange(ways_are_known_, false)) {
    error = set_cpus(hierarchy, directory, wanted);
    read_back(hierarchy, directory, state);
  }
  if (state.outside > 0) state.problem = GuestProblem::kThreadsOutside;
  if (is_refused()) state.problem = GuestProblem::kRefused;
  return state;
}

void Containers::read_processes(const Hierarchy& hierarchy, const Tree& tree,
                                States& states) const {
  for (policy::GuestContainerState& state : states) {
    state.processes.clear();
    const auto found = tree.containers.find(state.id);
    if (found == tree.containers.end()) continue;
    state.threads = static_cast<int>(threads_of(hierarchy, found->second).size());
    for (const int pid : read_numbers(found->second / "cgroup.procs")) {
      if (state.processes.size() == guest::kMaxProcesses) break;
      state.processes.push_back(read_process(pid));
    }
    std::ranges::sort(state.processes, {}, &policy::GuestProcess::pid);
  }
}

void Containers::release(const Hierarchy& hierarchy, const GuestCpuSet& online) {
  adopt();
  by_threads_ = false;
  for (const auto& [directory, quota] : quotas_) restore_quota(hierarchy, directory, quota);
  for (const auto& [directory, given] : given_) give_back(hierarchy, directory, online);
  quotas_.clear();
  forget_gone();
  record_.save({});
}

/// The kernel refuses to clear the cpuset of a cgroup that has threads, and then does not add to it
/// what is plugged later: that is for us to do, unless others wrote something else there.
void Containers::give_back(const Hierarchy& hierarchy, const Path& directory,
                           const GuestCpuSet& online) {
  Given& given = given_.at(directory);
  if (!has_cpusets(hierarchy)) {
    place_threads(hierarchy, directory, online);
  } else if (!given.is_back || given_cpus(directory) == given.cpus) {
    clear_cpuset(hierarchy, directory, online);
    given.cpus = online;
  }
  given.is_back = true;
}

std::optional<GuestCpuSet> Containers::given(const Path& cgroup) const {
  const auto found = given_.find(cgroup);
  return found == given_.end() ? std::nullopt : std::optional(found->second.cpus);
}

bool Containers::lift(const Hierarchy& hierarchy, const Path& directory, bool requested) {
  const auto known = quotas_.find(directory);
  if (!requested) {
    if (known == quotas_.end()) return false;
    restore_quota(hierarchy, directory, known->second);
    quotas_.erase(known);
    return false;
  }
  if (auto quota = read_quota(hierarchy, directory)) {
    quotas_[directory] = *std::move(quota);
    save();
  }
  return lift_quota(hierarchy, directory);
}

/// Takes the cgroup off what it is not to have any more, before others are let onto it.
void Containers::narrow(const Hierarchy& hierarchy, const Path& directory,
                        const GuestCpuSet& cpus) {
  const auto given = given_.find(directory);
  if (given == given_.end() || given->second.cpus.subset_of(cpus)) return;
  const GuestCpuSet kept = given->second.cpus & cpus;
  if (!kept.empty()) set_cpus(hierarchy, directory, kept);
}

int Containers::set_cpus(const Hierarchy& hierarchy, const Path& directory,
                         const GuestCpuSet& cpus) {
  if (!has_cpusets(hierarchy)) return place_threads(hierarchy, directory, cpus);
  const auto [at, is_first] = given_.try_emplace(directory);
  Given& given = at->second;
  const bool same = !std::exchange(given.is_back, false) && given.cpus == cpus;
  given.cpus = cpus;
  save();
  if (!is_first && ways_are_known_ && same) return 0;
  if (!is_first && ways_are_known_ && given.is_alone) {
    return write_text(directory / "cpuset.cpus", policy::format_list(cpus));
  }
  // On v1 what is below does not follow by itself.
  given.is_alone = hierarchy.kind == CgroupKind::kV2 || list_directories(directory).empty();
  return set_cpuset(hierarchy, directory, cpus);
}

/// A thread that confined itself further stays as it is, unless that is what it was given before.
int Containers::place_threads(const Hierarchy& hierarchy, const Path& directory,
                              const GuestCpuSet& cpus) {
  Given& given = given_[directory];
  const GuestCpuSet before = std::exchange(given.cpus, cpus);
  const auto is_ours = [&](const GuestCpuSet& has) {
    return std::ranges::find(given.earlier, has) != given.earlier.end();
  };
  if (before != cpus && !before.empty() && !is_ours(before)) given.earlier.push_back(before);
  save();
  int error = 0;
  bool changed = true;
  for (int pass = 0; pass < kMostPasses && changed; ++pass) {
    changed = false;
    for (const int tid : threads_of(hierarchy, directory)) {
      const auto has = calls_.affinity(tid);
      if (!has || *has == cpus || (has->subset_of(cpus) && !is_ours(*has))) continue;
      const int failed = calls_.set_affinity(tid, cpus);
      if (failed == 0) changed = true;
      if (failed != 0 && failed != ESRCH) error = failed;
    }
  }
  if (error == 0) given.earlier.clear();
  save();
  return error;
}

void Containers::read_back(const Hierarchy& hierarchy, const Path& directory,
                           policy::GuestContainerState& state) const {
  GuestCpuSet used;
  state.threads = state.outside = 0;
  for (const int tid : threads_of(hierarchy, directory)) {
    const auto cpus = calls_.affinity(tid);
    if (!cpus) continue;
    ++state.threads;
    used |= *cpus;
    if (!cpus->subset_of(state.wanted)) ++state.outside;
  }
  state.actual =
      has_cpusets(hierarchy) ? effective_cpus(hierarchy, directory).value_or(GuestCpuSet{}) : used;
}

policy::GuestProcess Containers::read_process(int pid) const {
  const Path process = roots_.proc / std::to_string(pid);
  policy::GuestProcess process_facts{.pid = pid, .name = read_text(process / "comm").value_or("")};
  for (const int tid : list_numbers(process / "task")) {
    const auto cpus = calls_.affinity(tid);
    if (!cpus) continue;
    ++process_facts.threads;
    process_facts.cpus |= *cpus;
  }
  return process_facts;
}

}  // namespace ka::agent
