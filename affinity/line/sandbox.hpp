// SPDX-License-Identifier: Apache-2.0
// One VM sandbox between two runs of the line: its last observation, its plan,
// and its original masks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/host/affinity_calls.hpp"
#include "affinity/host/cgroup.hpp"
#include "affinity/host/sandbox_cgroup.hpp"
#include "affinity/line/apply.hpp"
#include "affinity/line/cgroup_keeper.hpp"
#include "affinity/line/class_keeper.hpp"
#include "affinity/line/interrupt_keeper.hpp"
#include "affinity/line/isolation.hpp"
#include "affinity/line/masks.hpp"
#include "affinity/line/views.hpp"
#include "affinity/state/store.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "policy/plan/diff.hpp"
#include "policy/plan/plan.hpp"
#include "vmm/threads.hpp"

namespace ka::line {

/// What observing a sandbox needs; references outlive it.
struct ProbeContext {
  const vmm::Roots& roots;
  const base::ProcFs& proc;
  const std::optional<host::Cgroups>& cgroups;  ///< absent where the kernel has no cpuset cgroups
  const std::optional<base::Error>& cgroups_unread;  ///< why it is not known what there is
  host::AffinityCalls& calls;
  base::ThreadStats& stats;      ///< of the pass
  const policy::CpuSet& online;  ///< of the machine, as last seen
  const policy::ledger::Ledger& ledger;
};

class Sandbox {
 public:
  explicit Sandbox(std::string id) : id_(std::move(id)) {}

  const std::string& id() const { return id_; }

  /// Reads the VMM's threads, their masks and what their cgroups allow. kGone: the VMM is (see
  /// vmm::read_process). Any other error: it cannot be seen, and what was known of it stays.
  base::Result<void> observe(const ProbeContext& context, const policy::ledger::PodRecord& pod,
                             CgroupMode mode);
  /// The same with nothing remembered from earlier observations.
  base::Result<void> observe_afresh(const ProbeContext& context,
                                    const policy::ledger::PodRecord& pod, CgroupMode mode);
  /// Reads again what a write to its cgroup may have changed.
  void observe_masks(const ProbeContext& context, const policy::ledger::PodRecord& pod);
  /// Remembers masks and interrupts as the line leaves them.
  void remember();
  /// Much cheaper than observe(): true when no thread came or went and everything still reads as it
  /// was left. `node_has_vfio`: host::has_vfio().
  bool is_unchanged(const ProbeContext& context, bool node_has_vfio, CgroupKeeper::Time now) const;
  /// Whether it is one of those whose threads are placed, as last observed.
  bool has_process(int pid) const { return task_counts_.contains(pid); }
  /// Processes in its cgroup that are not its own, as sentences: each once, and a limited number
  /// until there are none.
  std::vector<std::string> new_foreign();
  /// Whether a thread may run on one of these CPUs, as last observed.
  bool uses(const policy::CpuSet& cpus) const;
  /// Living threads whose mask is another one than it was left with, and not what they should have.
  std::vector<ChangedMask> changed_masks(host::AffinityCalls& calls) const;

  /// The facts for plan(), as last observed.
  policy::SandboxFacts facts(const policy::ledger::PodRecord& pod) const;
  /// Computes the CPUs of each thread and interrupt. None is let onto CPUs of `doubted`, which
  /// another pod may own.
  void set_plan(policy::plan::SandboxPlan plan, policy::CpuSet doubted);
  const policy::CpuSet& doubted() const { return doubted_; }
  /// The plan's set of the cgroup, without those.
  policy::CpuSet cgroup_wanted() const;
  /// Null: not planned yet.
  const policy::plan::SandboxPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  /// Input of diff(): each thread with its planned CPUs.
  std::vector<policy::plan::ThreadPlacement> placements() const;
  /// Input of diff(): each thread with the mask it would have without us.
  std::vector<policy::plan::ThreadPlacement> placements_of_originals() const;
  /// Every thread has what it would have without us.
  bool has_originals() const;
  /// True: masks were seen for the first time, to be saved before a thread gets another one, for a
  /// restart to know them.
  bool prepare() { return masks_.prepare(); }
  /// Records the outcome of a write.
  void record(const WriteResult& result);
  /// What the kernel refused is tried again.
  void retry_refused();

  void set_monitor(vmm::MonitorFacts facts) { monitor_ = std::move(facts); }

  /// As the VMM's monitor reported it last.
  vmm::GuestBoot boot() const { return monitor_ ? monitor_->boot : vmm::GuestBoot{}; }

  const std::vector<ThreadView>& threads() const { return threads_; }
  const vmm::VmmThreads& seen() const { return seen_; }
  /// What could not be read at the last observation; empty: everything was. Threads that were
  /// not seen then are marked.
  const std::string& trouble() const { return trouble_; }
  const std::string& cgroup() const { return cgroups_.directory(); }
  const std::optional<policy::CpuSet>& cgroup_cpus() const { return cgroups_.cpus(); }
  /// What a plan may use for vCPUs: what their cgroup allows, or can be made to.
  std::optional<policy::CpuSet> reachable_cpus() const;
  CgroupKeeper& keeper() { return keeper_; }
  const CgroupKeeper& keeper() const { return keeper_; }
  InterruptKeeper& interrupts() { return interrupts_; }
  const InterruptKeeper& interrupts() const { return interrupts_; }
  ClassKeeper& classes() { return classes_; }
  const ClassKeeper& classes() const { return classes_; }
  IsolationRecord& isolation() { return isolation_; }
  const IsolationRecord& isolation() const { return isolation_; }

  bool released() const { return released_; }
  void set_released(bool released) { released_ = released; }
  /// It is released because its source does not list it any more, while its VM lives.
  bool unlisted() const { return unlisted_; }
  void set_unlisted(bool unlisted) { unlisted_ = unlisted; }
  /// Its threads are released: other programs decide their masks.
  bool left_alone() const { return left_alone_; }
  void set_left_alone(bool left_alone) { left_alone_ = left_alone; }
  /// Masks of ours are about to be written, or a thread has its original one again.
  void set_placed() { masks_.set_placed(); }
  void set_freed(const policy::ThreadKey& thread) { masks_.set_freed(thread); }

  /// What the state file needs, and back.
  state::Saved saved(const policy::ledger::PodRecord& pod) const;
  void restore(const state::Saved& saved);

 private:
  base::Result<void> observe_all(const ProbeContext& context, const policy::ledger::PodRecord& pod,
                                 CgroupMode mode);
  base::Result<void> discover(const ProbeContext& context, const vmm::Target& target);
  bool forget_ended(const vmm::VmmThreads& now);
  void count_tasks(const base::ProcFs& proc);
  void read_masks(const ProbeContext& context, const policy::ledger::PodRecord& pod,
                  const host::CgroupFacts& of_vmm);
  ThreadView read_thread(const policy::ThreadFacts& facts, base::Result<policy::CpuSet> actual,
                         const std::vector<ThreadView>& before);
  base::Result<policy::CpuSet> read_mask(host::AffinityCalls& calls,
                                         const policy::ThreadKey& key) const;
  void remember_originals();
  void record_trouble(const base::Error& error);
  /// What the cgroup of a thread allows; empty when that is not known.
  const policy::CpuSet& allowed_for(const policy::ThreadFacts& thread) const;
  const policy::CpuSet* reachable_for(const policy::ThreadFacts& thread) const;
  bool is_kept(const policy::ThreadFacts& thread) const;
  std::map<policy::Role, policy::CpuSet> cgroups_by_role() const;
  void assign();
  void clip(ThreadView& thread) const;
  policy::CpuSet wanted_now(const ThreadView& thread) const;

  std::string id_;
  std::optional<vmm::Discovery> discovery_;
  std::optional<vmm::MonitorFacts> monitor_;
  vmm::VmmThreads seen_;
  std::string trouble_;
  std::vector<ThreadView> threads_;
  std::map<int, std::size_t> task_counts_;  ///< by pid: threads when it was last observed
  std::optional<policy::plan::SandboxPlan> plan_;
  policy::CpuSet doubted_;
  host::SandboxCgroups cgroups_;
  Masks masks_;
  CgroupKeeper keeper_;
  InterruptKeeper interrupts_;
  ClassKeeper classes_;
  IsolationRecord isolation_;
  std::set<std::string> reported_foreign_;
  bool released_ = false, left_alone_ = false, unlisted_ = false;
};

}  // namespace ka::line
