// SPDX-License-Identifier: Apache-2.0
// One VM sandbox as the engine holds it between two runs of the line: what was last seen of it,
// what was planned for it, what it was before we came.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/engine/affinity_calls.hpp"
#include "affinity/engine/apply.hpp"
#include "affinity/engine/cgroup_keeper.hpp"
#include "affinity/engine/interrupt_keeper.hpp"
#include "affinity/engine/views.hpp"
#include "affinity/host/cgroup.hpp"
#include "affinity/state/store.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "policy/plan/diff.hpp"
#include "policy/plan/isolation.hpp"
#include "policy/plan/plan.hpp"
#include "vmm/threads.hpp"

namespace ka::engine {

/// What looking at a sandbox needs; references outlive it.
struct Eyes {
  const vmm::Roots& roots;
  const base::ProcFs& proc;
  const std::optional<host::Cgroups>& cgroups;  ///< absent where the kernel has no cpuset cgroups
  AffinityCalls& calls;
  base::ThreadStats& stats;  ///< of the pass
};

class Sandbox {
 public:
  explicit Sandbox(std::string id) : id_(std::move(id)) {}

  const std::string& id() const { return id_; }

  /// Reads the VMM's threads, their masks and what their cgroups allow. kGone: the VMM is (see
  /// vmm::read_process). Any other error: it cannot be seen, and what was known of it stays.
  base::Result<void> observe(const Eyes& eyes, const policy::ledger::PodRecord& pod,
                             CgroupMode mode);
  /// The same with nothing remembered from earlier looks.
  base::Result<void> observe_afresh(const Eyes& eyes, const policy::ledger::PodRecord& pod,
                                    CgroupMode mode);
  /// Reads again what a write to its cgroup may have changed.
  void observe_masks(const Eyes& eyes, const policy::ledger::PodRecord& pod);
  /// Remembers the masks as the line leaves them: whatever differs from them later is the work of
  /// someone else, also when `verify` has seen it before.
  void remember_masks();
  /// Much cheaper: true when no thread came or went and every mask still reads as it was left.
  bool looks_unchanged(const Eyes& eyes, CgroupKeeper::Time now) const;
  /// Whether a thread may run on one of these CPUs, as far as was last seen.
  bool uses(const policy::CpuSet& cpus) const;
  /// Living threads whose mask is another one than it was left with, and not what they should have.
  int count_changed_masks(AffinityCalls& calls) const;

  /// The facts for plan(), as last observed.
  policy::SandboxFacts facts(const policy::ledger::PodRecord& pod) const;
  /// Takes a plan and works out what each thread is to have.
  void take_plan(policy::plan::SandboxPlan plan);
  /// Every thread is to have what it would have without us.
  std::vector<policy::plan::ThreadPlacement> placements_of_originals() const;
  /// What diff() compares.
  std::vector<policy::plan::ThreadPlacement> placements() const;
  /// Enters what became of a write.
  void note(const Applied& applied);

  /// Threads that were given up are tried again.
  void forgive();
  void set_monitor(vmm::MonitorFacts facts) { monitor_ = std::move(facts); }

  const policy::plan::SandboxPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  const std::vector<ThreadView>& threads() const { return threads_; }
  const vmm::VmmThreads& seen() const { return seen_; }
  /// What could not be read when it was last observed, in words; empty: all of it was. Threads
  /// that were not seen then say so themselves.
  const std::string& trouble() const { return trouble_; }
  const std::string& cgroup() const { return cgroup_; }
  const std::optional<policy::CpuSet>& cgroup_cpus() const { return cgroup_cpus_; }
  /// What a plan may use for vCPUs: `cgroup_cpus`, or what it can be made.
  std::optional<policy::CpuSet> reachable_cpus() const;
  CgroupKeeper& keeper() { return keeper_; }
  const CgroupKeeper& keeper() const { return keeper_; }
  InterruptKeeper& interrupts() { return interrupts_; }
  const InterruptKeeper& interrupts() const { return interrupts_; }

  /// Its exclusive containers, as follow_isolation() left them.
  const std::vector<policy::plan::ContainerIsolation>& isolation() const { return isolation_; }
  void set_isolation(std::vector<policy::plan::ContainerIsolation> isolation);
  /// Remembers what is said of a container's isolation; false when that was said last.
  bool announce(const std::string& container, const std::string& obstacles);

  bool released() const { return released_; }
  void set_released(bool released) { released_ = released; }
  /// Its threads have been given back: what they have now is for others to say.
  bool left_alone() const { return left_alone_; }
  void set_left_alone(bool left_alone) { left_alone_ = left_alone; }
  /// Every thread has what it would have without us.
  bool has_originals() const;

  /// What the state file needs, and back.
  state::Saved saved(const policy::ledger::PodRecord& pod) const;
  void restore(const state::Saved& saved);

 private:
  base::Result<void> observe_all(const Eyes& eyes, const policy::ledger::PodRecord& pod,
                                 CgroupMode mode);
  void note_trouble(const base::Error& error);
  base::Result<policy::CpuSet> read_mask(const Eyes& eyes, const policy::ThreadKey& key) const;
  /// What the cgroup of a thread allows; empty when that is not known.
  const policy::CpuSet& allowed_for(const policy::ThreadFacts& thread) const;
  const policy::CpuSet* reachable_for(const policy::ThreadFacts& thread) const;
  std::map<policy::Role, policy::CpuSet> cgroups_by_role() const;
  bool forget_ended(const vmm::VmmThreads& now);
  void read_cgroups(const Eyes& eyes, const policy::ledger::PodRecord& pod,
                    const host::CgroupFacts& of_vmm);
  void enter_cgroup(int pid, const host::CgroupFacts& cgroup);
  void assign();
  policy::CpuSet original_of(const ThreadView& thread) const;
  policy::CpuSet wanted_now(const ThreadView& thread) const;
  void read_masks(const Eyes& eyes);
  void remember_originals();
  const state::Original* inherited(const ThreadView& thread) const;
  void judge(ThreadView& thread) const;

  std::string id_;
  std::optional<vmm::Discovery> discovery_;
  std::optional<vmm::MonitorFacts> monitor_;
  vmm::VmmThreads seen_;
  std::string trouble_;
  std::vector<ThreadView> threads_;
  std::optional<policy::plan::SandboxPlan> plan_;
  std::string cgroup_;
  std::optional<policy::CpuSet> cgroup_cpus_;     ///< of the vCPUs' cgroup
  std::map<int, policy::CpuSet> allowed_by_pid_;  ///< of every other process of the sandbox
  std::set<int> kept_;                            ///< processes inside the keeper's cgroup
  CgroupKeeper keeper_;
  InterruptKeeper interrupts_;
  std::map<policy::ThreadKey, std::string> refused_;  ///< given up, and why
  std::map<int, state::Original> originals_;
  std::optional<policy::CpuSet> narrowed_by_proxy_;  ///< what the proxy could use before that
  std::map<int, std::size_t> task_counts_;           ///< by pid: threads when it was last observed
  std::map<int, policy::CpuSet> left_;               ///< by tid: the mask as the line left it
  std::vector<policy::plan::ContainerIsolation> isolation_;
  std::map<std::string, std::string> announced_;  ///< by container: its obstacles
  bool released_ = false, left_alone_ = false;
};

}  // namespace ka::engine
