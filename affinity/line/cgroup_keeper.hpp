// SPDX-License-Identifier: Apache-2.0
// One sandbox's cgroup under cgroup = "manage": what its cpuset is, what others last wrote there,
// what we made of it.
//
// Any program may write a cgroup. What others wrote is replaced by what the plan wants, and
// remembered: it is restored when the sandbox is released.
//
//   state            event                                                next state
//   ---------------  ---------------------------------------------------  -----------------------
//   any              observed: another cgroup                             as from unmanaged
//   any              observed: not to be managed, and we wrote it         returning
//   any but refused  observed: not to be managed, or cannot be read       unmanaged
//   any but refused  observed: to be managed                              managed
//   any but refused  observed: to be managed, and nothing is written      watched
//   refused          observed: to be managed, or nothing of ours there    refused
//   watched,managed  others keep writing it, and it is not time to answer contested
//   managed          widen() for a plan that has CPUs for it              open
//   open             narrow()                                             managed
//   managed, open    the kernel refuses a write for now                   failed
//   managed, open    the kernel refuses a write (EPERM, EROFS)            refused
//   returning        widen(): others' cpuset is written back              unmanaged
//   returning        widen(), and the vCPUs have a partition still        returning
//   returning        widen(), and the write fails                         failed
//   refused          retry_refused(), or retry_due() after the back-off   failed
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "affinity/host/cgroup.hpp"
#include "affinity/host/cpuset_writer.hpp"
#include "affinity/line/answer_limit.hpp"
#include "affinity/state/store.hpp"
#include "base/backoff.hpp"
#include "policy/plan/cgroup.hpp"

namespace ka::line {

enum class CgroupMode {
  kObey,    ///< it is not written; what we wrote there is undone
  kWatch,   ///< planned as if it were managed, and not written
  kManage,  ///< it follows the plan
};

/// What the keeper writes with.
struct CgroupWriter {
  host::CpusetWriter& cpusets;
  /// Has saved() on disk, before each write: after kill -9 the next daemon can give it back.
  std::function<void()> save;
  policy::CpuSet all{};  ///< CPUs of the machine
};

class CgroupKeeper {
 public:
  using Time = AnswerLimit::Time;

  /// A write that failed is tried again after the first, then after twice as long each time, at the
  /// drift check.
  static constexpr std::chrono::seconds kFirstRetry{1}, kLastRetry{60};

  enum class State {
    kUnmanaged,  ///< planned within what it allows
    kReturning,  ///< our writes are being reverted
    kWatched,    ///< planned within its bound, not written
    kManaged,    ///< planned within its bound, written to follow the plan
    kOpen,       ///< the same, between the two writes of an update
    kContested,  ///< others' writes are not answered for now
    kFailed,     ///< it could not be written: tried again when it is observed
    kRefused,    ///< the kernel does not let us write it: tried again after a back-off
  };

  /// Reads the cgroup. `why_not`: why it cannot be managed; empty: it can, and then it is a
  /// cgroup v2.
  void observe(const std::optional<host::Cgroups>& cgroups, const std::string& directory,
               CgroupMode mode, const std::string& why_not);

  State state() const { return state_; }
  /// It is to be managed or restored, and the last observe() could not read it: problem() says why.
  bool is_unread() const { return is_unread_; }
  /// There is a cgroup to be managed or restored.
  bool has_seen() const { return cpuset_.has_value(); }
  /// The plan may take the cgroup's bound for what it allows.
  bool in_charge() const;
  /// The same, and nothing is written.
  bool only_watches() const { return state_ == State::kWatched; }
  /// Its last write failed, and it has not been observed since.
  bool has_failed() const { return state_ == State::kFailed; }
  /// What others wrote could not be written back yet.
  bool is_unreturned() const { return state_ == State::kReturning && !failure_.empty(); }
  /// It is to be managed, and the kernel does not let us write it.
  bool is_refused() const { return state_ == State::kRefused && has_seen(); }
  /// The threads have room for the way to their places, and none of it is another pod's.
  bool is_open() const { return state_ == State::kOpen; }
  /// Precondition: in_charge().
  const policy::plan::Cpuset& cpuset() const { return *cpuset_; }
  const std::string& directory() const { return directory_; }
  /// Why it is not managed although it should be, or why its last write failed; empty if neither.
  const std::string& problem() const { return problem_.empty() ? failure_ : problem_; }
  /// Others have written there since we did.
  bool is_overwritten() const { return ours_ && cpuset_ && cpuset_->configured != *ours_; }
  /// What is configured there, as last seen or written by us since.
  policy::CpuSet written() const { return cpuset_ ? cpuset_->configured : policy::CpuSet{}; }
  /// What others last wrote; absent while nothing of ours is there.
  const std::optional<policy::CpuSet>& theirs() const { return theirs_; }

  /// False: others keep writing there, and it is not time to answer (kContested). A set with CPUs
  /// that are exclusive to other pods (`foreign`) is answered also during back-off.
  bool accepts(const policy::CpuSet& wanted, const policy::CpuSet& foreign, Time now);

  /// Precondition: has_seen(). Makes the first write of an update (policy/plan/cgroup.hpp) where
  /// one is needed, or gives the cgroup back. True when it wrote.
  bool widen(const policy::CpuSet& wanted, const policy::CpuSet& foreign, Time now,
             const CgroupWriter& writer);
  /// The last one.
  bool narrow(const policy::CpuSet& wanted, Time now, const CgroupWriter& writer);

  /// False when another program wrote there, or changed what is above it, or it is time to try
  /// again.
  bool is_unchanged(const std::optional<host::Cgroups>& cgroups, Time now) const;
  /// What the kernel refused is tried again: at once, or where its back-off has passed.
  void retry_refused();
  void retry_due(Time now);
  /// problem() is another one than at the last call, or than before the last write.
  bool has_new_problem();

  std::optional<state::SavedCgroup> saved() const;
  void restore(const state::SavedCgroup& saved);

 private:
  State observed(const std::optional<host::Cgroups>& cgroups, CgroupMode mode);
  /// Another program wrote there since we did.
  bool is_foreign() const { return !ours_ || cpuset_->configured != *ours_; }
  bool is_repeated(const policy::CpuSet& wanted) const {
    return ours_ && is_foreign() && wanted == wanted_;
  }
  bool answer(const policy::CpuSet& cpus, const policy::CpuSet& wanted, Time now,
              const CgroupWriter& writer);
  bool write(const policy::CpuSet& cpus, Time now, const CgroupWriter& writer);
  bool give_back(const policy::CpuSet& foreign, Time now, const CgroupWriter& writer);
  bool may_answer(Time now) const;
  bool is_retry_due(Time now) const;
  void update_ours();
  /// Without the CPUs of a partition, others' cpuset may have none that the kernel could give.
  bool may_give_back() const { return cpuset_->apart.empty(); }
  void forget();

  State state_ = State::kUnmanaged;
  std::string directory_;
  std::optional<policy::plan::Cpuset> cpuset_;  ///< as last seen, or written by us since
  bool is_unread_ = false;                      ///< it could not be
  std::string problem_;                         ///< as last seen
  std::string failure_;                         ///< of a write that is still to be done
  std::optional<policy::CpuSet> theirs_;
  std::optional<policy::CpuSet> ours_;  ///< what we wrote last
  std::optional<policy::CpuSet> next_;  ///< a write that was begun, and may have been done
  policy::CpuSet wanted_;               ///< what the plan wanted then
  bool has_foreign_ = false;            ///< what others wrote has CPUs of other pods
  AnswerLimit answer_limit_;
  base::Backoff retries_{kFirstRetry, kLastRetry};  ///< of failed writes
  Time retry_{};
  std::string reported_;  ///< the problem that was reported last
};

}  // namespace ka::line
