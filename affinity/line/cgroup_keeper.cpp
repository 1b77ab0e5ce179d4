// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/cgroup_keeper.hpp"

#include <utility>

namespace ka::line {

using policy::CpuSet;

void CgroupKeeper::observe(const std::optional<host::Cgroups>& cgroups,
                           const std::string& directory, CgroupMode mode,
                           const std::string& why_not) {
  if (directory != directory_) forget();
  directory_ = directory;
  cpuset_.reset();
  is_unread_ = false;
  if (state_ != State::kRefused) problem_.clear();
  if (!why_not.empty()) problem_ = why_not;
  state_ = observed(cgroups, why_not.empty() ? mode : CgroupMode::kObey);
}

CgroupKeeper::State CgroupKeeper::observed(const std::optional<host::Cgroups>& cgroups,
                                           CgroupMode mode) {
  const bool obeys = mode == CgroupMode::kObey;
  const State unmanaged = state_ == State::kRefused ? State::kRefused : State::kUnmanaged;
  if (obeys && !(ours_ && cgroups)) return unmanaged;
  auto seen = cgroups->cpuset(directory_);
  if (!seen) {
    problem_ = seen.error().message;
    is_unread_ = true;
    return unmanaged;
  }
  cpuset_ = std::move(*seen);
  update_ours();
  if (obeys) return State::kReturning;
  if (state_ == State::kRefused) return State::kRefused;
  return mode == CgroupMode::kWatch ? State::kWatched : State::kManaged;
}

/// Of an earlier daemon that was killed at a write: it was done or it was not.
void CgroupKeeper::update_ours() {
  if (next_ && cpuset_->configured == *next_) ours_ = next_;
  next_.reset();
}

bool CgroupKeeper::in_charge() const {
  return state_ == State::kWatched || state_ == State::kManaged || state_ == State::kOpen;
}

bool CgroupKeeper::accepts(const CpuSet& wanted, const CpuSet& foreign, Time now) {
  if (!in_charge() || !is_repeated(wanted) || wanted == cpuset_->effective()) return true;
  has_foreign_ = cpuset_->effective().intersects(foreign);
  if (may_answer(now)) return true;
  state_ = State::kContested;
  problem_ = "another program keeps writing its cpuset; reverted with back-off";
  return false;
}

/// I2 outranks the back-off.
bool CgroupKeeper::may_answer(Time now) const {
  return has_foreign_ ? answer_limit_.may_answer_urgently(now) : answer_limit_.may_answer(now);
}

bool CgroupKeeper::widen(const CpuSet& wanted, const CpuSet& foreign, Time now,
                         const CgroupWriter& writer) {
  if (state_ == State::kReturning) return may_give_back() && give_back(foreign, now, writer);
  if (!in_charge()) return false;
  state_ = wanted.empty() ? State::kManaged : State::kOpen;
  const auto cpus = policy::plan::widened(*cpuset_, wanted, foreign);
  return cpus && answer(*cpus, wanted, now, writer);
}

bool CgroupKeeper::narrow(const CpuSet& wanted, Time now, const CgroupWriter& writer) {
  if (!in_charge()) return false;
  state_ = State::kManaged;
  const auto cpus = policy::plan::narrowed(*cpuset_, wanted);
  if (!cpus) failure_.clear();
  return cpus && answer(*cpus, wanted, now, writer);
}

bool CgroupKeeper::answer(const CpuSet& cpus, const CpuSet& wanted, Time now,
                          const CgroupWriter& writer) {
  if (is_repeated(wanted)) answer_limit_.answered(now);
  if (is_foreign()) theirs_ = cpuset_->configured;
  wanted_ = wanted;
  return write(cpus, now, writer);
}

bool CgroupKeeper::write(const CpuSet& cpus, Time now, const CgroupWriter& writer) {
  next_ = cpus;
  writer.save();
  const auto done = writer.cpusets.write(directory_, cpus);
  next_.reset();
  failure_.clear();
  if (done) {
    cpuset_->configured = cpus;
    ours_ = cpus;
    retries_.reset();
    reported_.clear();
    return true;
  }
  retry_ = now + retries_.next();
  const bool is_final =
      done.error().code == base::ErrorCode::kPermission && state_ != State::kReturning;
  state_ = is_final ? State::kRefused : State::kFailed;
  (is_final ? problem_ : failure_) = done.error().message;
  return false;
}

/// Where others have written since, what they wrote stays. Where it fails, the cgroup is ours
/// still. Where nobody had written a set, all CPUs are no limit either: the kernel lets nobody
/// empty the cpuset of a cgroup with processes (ENOSPC; validate_change() in
/// kernel/cgroup/cpuset.c).
bool CgroupKeeper::give_back(const CpuSet& foreign, Time now, const CgroupWriter& writer) {
  const bool is_to_be_written = !is_foreign();
  CpuSet cpus = policy::plan::given_back(*cpuset_, *theirs_, foreign);
  if (cpus.empty()) cpus = writer.all;
  if (is_to_be_written && !write(cpus, now, writer)) return false;
  forget();
  return is_to_be_written;
}

void CgroupKeeper::forget() {
  state_ = State::kUnmanaged;
  failure_.clear();
  theirs_.reset();
  ours_.reset();
  next_.reset();
  wanted_ = {};
}

void CgroupKeeper::retry_refused() {
  if (state_ == State::kRefused) state_ = State::kFailed;
}

void CgroupKeeper::retry_due(Time now) {
  if (now >= retry_) retry_refused();
}

bool CgroupKeeper::has_new_problem() { return std::exchange(reported_, problem()) != problem(); }

bool CgroupKeeper::is_unchanged(const std::optional<host::Cgroups>& cgroups, Time now) const {
  if (is_unread_) return false;
  if (state_ == State::kUnmanaged || !cpuset_) return true;
  if (state_ == State::kReturning) return !is_retry_due(now);
  const bool is_due = (state_ == State::kContested && may_answer(now)) || is_retry_due(now);
  const auto seen = cgroups->cpuset(directory_);
  return seen && *seen == *cpuset_ && !is_due;
}

/// A failure is known also while the cgroup was only observed since.
bool CgroupKeeper::is_retry_due(Time now) const {
  return (state_ == State::kFailed || !failure_.empty()) && now >= retry_;
}

/// Before the first write, what others wrote is what is there.
std::optional<state::SavedCgroup> CgroupKeeper::saved() const {
  if (!theirs_ || !(ours_ || next_)) return std::nullopt;
  const CpuSet& ours = ours_ ? *ours_ : *theirs_;
  return state::SavedCgroup{directory_, *theirs_, ours, next_.value_or(ours)};
}

void CgroupKeeper::restore(const state::SavedCgroup& saved) {
  directory_ = saved.directory;
  theirs_ = saved.theirs;
  ours_ = saved.ours;
  next_ = saved.next;
}

}  // namespace ka::line
