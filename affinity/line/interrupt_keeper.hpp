// SPDX-License-Identifier: Apache-2.0
// The interrupts of the devices that are passed through to one sandbox: actual, planned and
// original CPUs of each.
//
// irqbalance and others may write them too; such writes are reverted with growing delays.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "affinity/line/answer_limit.hpp"
#include "affinity/line/views.hpp"
#include "affinity/state/store.hpp"
#include "base/result.hpp"
#include "policy/facts/interrupts.hpp"
#include "policy/plan/plan.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::line {

/// What came of a round of writes to interrupts.
struct InterruptWrites {
  int done = 0;
  int failed = 0;                    ///< for now
  std::vector<std::string> refused;  ///< the reason, for each that can never be moved
};

class InterruptKeeper {
 public:
  using Time = AnswerLimit::Time;

  /// Reads what the VMM has now. Interrupts come and go with the guest's driver. While something
  /// cannot be read, what was known and is not seen stays; the error is why.
  base::Result<void> observe(const vmm::Roots& roots, int vmm);
  /// None is sent to CPUs of `doubted`, which another pod may own.
  void set_plan(const policy::plan::SandboxPlan& plan, const policy::CpuSet& doubted);

  const std::vector<policy::DeviceFacts>& devices() const { return devices_; }
  const std::vector<InterruptView>& views() const { return views_; }
  /// Some go to CPUs of this set, and could be sent elsewhere.
  bool must_leave(const policy::CpuSet& cpus) const;

  /// Records what the next place() or leave() may change. True: something to be saved before that.
  bool prepare();
  /// Sends each where the plan wants it. Those that it leaves alone get back what they had, but for
  /// CPUs of `foreign`.
  InterruptWrites place(const vmm::Roots& roots, const policy::CpuSet& foreign, Time now);
  /// The same, only for those that go to CPUs of `foreign`.
  InterruptWrites leave(const vmm::Roots& roots, const policy::CpuSet& foreign, Time now);
  /// Gives all that we sent somewhere what they had, but for CPUs of `foreign`; what others wrote
  /// since stays. Then they are not ours any more.
  InterruptWrites give_back(const vmm::Roots& roots, const policy::CpuSet& foreign);

  /// Remembers the interrupts as the line leaves them.
  void remember() { left_ = picture(); }
  /// False when something differs from how the line left it, or it is time to try again.
  /// `node_has_vfio`: host::has_vfio(), asked once for all sandboxes; true where that is not known.
  bool is_unchanged(const vmm::Roots& roots, bool node_has_vfio, int vmm, Time now) const;
  /// How many of those that we placed another program has moved.
  int count_changed(const vmm::Roots& roots, int vmm) const;
  /// What the kernel refused is tried again.
  void retry_refused() { refused_.clear(); }

  std::vector<state::SavedInterrupt> saved() const;
  void restore(const std::vector<state::SavedInterrupt>& saved);

 private:
  struct Refusal {
    std::string name;
    policy::CpuSet wanted;
    std::string why;
  };

  policy::PassedThrough picture() const;
  void keep_unseen(const policy::PassedThrough& before);
  void forget_freed(bool is_all_seen);
  void evaluate(InterruptView& view) const;
  bool is_contested(const InterruptView& view) const;
  bool may_place(InterruptView& view, bool in_time);
  void place_one(const vmm::Roots& roots, InterruptView& view, InterruptWrites& writes);
  bool send(const vmm::Roots& roots, InterruptView& view, InterruptWrites& writes);
  void fail(InterruptView& view, const base::Error& error, InterruptWrites& writes);
  void give_back_one(const vmm::Roots& roots, InterruptView& view, const policy::CpuSet& foreign,
                     InterruptWrites& writes);

  std::vector<policy::DeviceFacts> devices_;
  std::vector<InterruptView> views_;  ///< by number
  policy::PassedThrough left_;
  std::map<int, state::SavedInterrupt> records_;  ///< by number, of those that we place
  std::map<int, Refusal> refused_;                ///< by number
  bool unanswered_ = false;  ///< some could be placed and are not: try again when it is time
  AnswerLimit answer_limit_;
};

}  // namespace ka::line
