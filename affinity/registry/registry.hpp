// SPDX-License-Identifier: Apache-2.0
// The registry: the node's pods. It folds events into the ledger and reports what
// changed, owns the start gate (policy/ledger/start_gate.hpp) and the state
// on disk. It places nothing.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/registry/ownership_times.hpp"
#include "affinity/registry/refused_vmms.hpp"
#include "affinity/registry/reports.hpp"
#include "affinity/registry/state_files.hpp"
#include "affinity/state/store.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "policy/ledger/contests.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/ledger/refused.hpp"
#include "policy/ledger/start_gate.hpp"

namespace ka::registry {

/// After a start the node's sources are waited for this long; those that have not reported by then
/// are done without. A container runtime that restarts needs a few seconds.
inline constexpr std::chrono::seconds kStartLimit{10};

class Registry {
 public:
  /// All must outlive it. Subscribes to the sources and guests of `board`.
  Registry(state::Store& store, board::Board& board, const log::Log& log, const base::Clock& clock);
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry() = default;

  const policy::ledger::Ledger& ledger() const { return ledger_; }
  /// Null: not known. Valid until the next change.
  const policy::ledger::PodRecord* find(std::string_view pod) const { return ledger_.find(pod); }
  const OwnershipTimes& ownership_times() const { return ownership_times_; }
  /// What each source said of whose CPUs are whose, and when.
  const Reports& reports() const { return reports_; }
  /// PodResources has answered since kubelet's state last changed: the two can be compared.
  bool has_current_resources() const { return current_resources_; }
  /// CPUs that are assigned more than once, as of the last event.
  const std::vector<policy::ledger::Contest>& contests() const { return contests_; }
  /// Containers that name claims which are not theirs.
  const std::vector<policy::ledger::RefusedClaims>& refused() const { return refused_; }

  /// Folds an event into the ledger and notifies of what changed. One VM is one sandbox: a second
  /// pod with the same is recorded without it, unless the first has it by its state file alone.
  /// Then that one loses it (Change::former_pod). Recorded without a VM is also a pod whose VMM has
  /// ended, where a source that repeats numbers names another process of its number.
  policy::ledger::Change fold(const policy::ledger::Event& event);
  /// Pods whose VM was refused, and why: until they have one, or are gone.
  const RefusedVmms::Texts& refused_vmms() const { return refused_vmms_.texts(); }
  /// The reports of VMs that were refused as another pod's, and now are no pod's; each once.
  std::vector<policy::ledger::Event> remove_due_claims();
  /// The VMM of a sandbox has ended: forgets it, and its state on disk.
  policy::ledger::Change end(const std::string& sandbox);

  /// A source that this node has: nothing is widened until it has reported. Before load().
  void expect(policy::ledger::Source source) { gate_.expect(source); }
  /// A source has reported all that it has.
  void source_synced(policy::ledger::Source source);
  /// The sources that have not reported are not waited for any longer. False: none was waited for.
  bool stop_waiting();
  /// State of before the start that cannot be read is not waited for any longer.
  void dismiss_lost_state();
  /// What may be written since the start, and what that waits for.
  const policy::ledger::StartGate& gate() const { return gate_; }
  /// The gate has opened, and the whole node has not been run since.
  bool has_opened() const { return opened_; }
  /// The same, once.
  bool consume_opened();

  /// Reads the state files that were not read before, and hands each to `adopt`, the one that was
  /// written last first.
  void load(const std::function<void(const state::Saved&)>& adopt);
  /// Records a pod as it was before a restart, without the pins that have ended since. What a
  /// source has reported meanwhile counts.
  /// False: by that it is another VM, or its VM is another pod's, and it is recorded without one.
  /// Of two files with one VM the one that is restored first has it: see load().
  bool restore(const state::Saved& saved);
  /// Records a pod as it was before a restart, but for its VM. Its CPUs stay its own.
  void restore_without_vmm(const policy::ledger::PodRecord& pod);
  /// What could not be read, written or removed is tried again; see load().
  void retry(const std::function<void(const state::Saved&)>& adopt);
  /// Who knows the state of a pod that is to be saved; before anything is.
  void describe_with(StateFiles::Describe describe);
  void save(const std::string& pod) { files_.save(pod); }
  /// Of a pod from before the start whose VMM has ended, that is all that is kept.
  void drop(const policy::ledger::PodRecord& pod);
  /// Records that the VMM of a pod had ended. True: its file has nothing else.
  bool restore_ended(const state::Saved& saved);
  /// Pods whose state on disk is not as it should be.
  const std::map<std::string, Unsaved>& unsaved() const { return files_.unsaved(); }

 private:
  void subscribe();
  bool is_admitted(const policy::ledger::Event& event) const;
  void refuse_vmm(const std::string& pod, const std::string& text, policy::ledger::Source source);
  bool set_refused(const std::string& pod, const std::string& text, policy::ledger::Source source);
  bool names_successor(const policy::ledger::Event& event) const;
  policy::ledger::Change fold_without_vmm(policy::ledger::Event event);
  void record_ended(const policy::ledger::PodRecord& pod);
  void forget_ended(const std::string& pod);
  void update_file_of_gone(const std::string& pod);
  std::optional<state::Saved> with_ended(const std::string& pod,
                                         std::optional<state::Saved> saved) const;
  bool restore_pod(const state::Saved& saved);
  void hand_over_vm(const std::string& former, const policy::ledger::Event& event);
  void update_gate(const policy::ledger::Event& event);
  void step_gate(const std::function<void()>& step);
  policy::ledger::Change apply(const policy::ledger::Event& event);
  void notify_of_contests(const policy::ledger::Change& change);
  void notify_of_refused(const std::string& pod);
  void add_or_remove_sandbox(const std::string& pod);

  state::Store& store_;
  board::Board& board_;
  const log::Log& log_;
  const base::Clock& clock_;
  policy::ledger::Ledger ledger_;
  policy::ledger::StartGate gate_;
  bool opened_ = false;
  bool current_resources_ = false;
  OwnershipTimes ownership_times_;
  Reports reports_;
  std::vector<policy::ledger::Contest> contests_;
  std::vector<policy::ledger::RefusedClaims> refused_;
  RefusedVmms refused_vmms_;
  StateFiles files_;
  std::vector<board::Subscription> subscriptions_;
};

}  // namespace ka::registry
