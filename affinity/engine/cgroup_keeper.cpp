// SPDX-License-Identifier: Apache-2.0
#include "affinity/engine/cgroup_keeper.hpp"

#include <utility>

namespace ka::engine {

using policy::CpuSet;

void CgroupKeeper::look(const std::optional<host::Cgroups>& cgroups, const Directory& directory,
                        CgroupMode mode, const std::string& why_not) {
  if (directory != directory_) forget();
  directory_ = directory;
  mode_ = mode;
  in_charge_ = open_ = false;
  cpuset_.reset();
  if (!refused_) problem_.clear();
  if (!why_not.empty()) {
    problem_ = why_not;
    mode_ = CgroupMode::kObey;
  }
  if (mode_ == CgroupMode::kObey && !(ours_ && cgroups)) return;
  auto seen = cgroups->cpuset(directory);
  if (!seen) {
    problem_ = seen.error().message;
    return;
  }
  cpuset_ = std::move(*seen);
  in_charge_ = mode_ != CgroupMode::kObey && !refused_;
}

bool CgroupKeeper::accepts(const CpuSet& wanted, Time now) {
  if (!in_charge_ || !is_repeated(wanted) || wanted == cpuset_->effective()) return true;
  if (patience_.may_answer(now)) return true;
  in_charge_ = false;
  problem_ = "another program keeps writing its cpuset; reverted with back-off";
  return false;
}

bool CgroupKeeper::widen(const CpuSet& wanted, const CpuSet& foreign, Time now,
                         host::CpusetWriter& writer) {
  if (mode_ == CgroupMode::kObey) return give_back(foreign, writer);
  if (!in_charge_) return false;
  open_ = !wanted.empty();
  const auto cpus = policy::plan::widened(*cpuset_, wanted, foreign);
  return cpus && answer(*cpus, wanted, now, writer);
}

bool CgroupKeeper::narrow(const CpuSet& wanted, Time now, host::CpusetWriter& writer) {
  open_ = false;
  if (!in_charge_) return false;
  const auto cpus = policy::plan::narrowed(*cpuset_, wanted);
  return cpus && answer(*cpus, wanted, now, writer);
}

bool CgroupKeeper::answer(const CpuSet& cpus, const CpuSet& wanted, Time now,
                          host::CpusetWriter& writer) {
  if (is_repeated(wanted)) patience_.answered(now);
  if (is_foreign()) theirs_ = cpuset_->configured;
  wanted_ = wanted;
  return write(cpus, writer);
}

bool CgroupKeeper::write(const CpuSet& cpus, host::CpusetWriter& writer) {
  const auto done = writer.write(directory_, cpus);
  if (done) {
    cpuset_->configured = cpus;
    ours_ = cpus;
    return true;
  }
  in_charge_ = false;
  problem_ = done.error().message;
  refused_ = done.error().code == base::ErrorCode::kPermission;
  return false;
}

/// Where others have written since, what they wrote stays.
bool CgroupKeeper::give_back(const CpuSet& foreign, host::CpusetWriter& writer) {
  const bool written =
      !is_foreign() && write(policy::plan::given_back(*cpuset_, *theirs_, foreign), writer);
  forget();
  return written;
}

void CgroupKeeper::forget() {
  theirs_.reset();
  ours_.reset();
  wanted_ = {};
  refused_ = false;
}

bool CgroupKeeper::looks_unchanged(const std::optional<host::Cgroups>& cgroups, Time now) const {
  if (mode_ == CgroupMode::kObey || !cpuset_) return true;
  const bool is_due = !in_charge_ && !refused_ && patience_.may_answer(now);
  const auto seen = cgroups->cpuset(directory_);
  return seen && *seen == *cpuset_ && !is_due;
}

std::optional<state::SavedCgroup> CgroupKeeper::saved() const {
  if (!theirs_ || !ours_) return std::nullopt;
  return state::SavedCgroup{directory_.string(), *theirs_, *ours_};
}

void CgroupKeeper::restore(const state::SavedCgroup& saved) {
  directory_ = saved.directory;
  theirs_ = saved.theirs;
  ours_ = saved.ours;
}

}  // namespace ka::engine
