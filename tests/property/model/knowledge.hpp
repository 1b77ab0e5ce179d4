// SPDX-License-Identifier: Apache-2.0
// The reference: what a daemon has been told, folded by the plainest rules that docs/sources.md
// allows, and what follows from it: who owns which CPU, and whether that is known at all. It shares
// no code with the ledger, the gate or the plan.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/ledger/event.hpp"

namespace ka::model {

struct KnownContainer {
  policy::ContainerFacts facts;
  std::vector<policy::ledger::PreparedClaim> named;  ///< in its environment
  std::optional<bool> exclusive;                     ///< as an operator has it
  std::optional<bool> owned_before;                  ///< a restart: what was known then

  bool operator==(const KnownContainer&) const = default;
};

struct KnownPod {
  std::string uid, name;
  std::optional<policy::ProcessId> vmm;
  std::map<std::string, KnownContainer> containers;
  /// Whether the daemon still has it, or has it already, depends on where it was interrupted.
  bool unsure = false;
  /// A container of it was reported when its VMM had ended: the daemon has it until its end is
  /// reported.
  bool is_late = false;

  policy::CpuSet cpus() const;  ///< of all containers that run
};

class Knowledge {
 public:
  /// The sources that the node has.
  explicit Knowledge(std::set<policy::ledger::Source> sources) : sources_(std::move(sources)) {}

  void record(const policy::ledger::Event& event);
  void synced(policy::ledger::Source source);
  void time_is_up();
  /// An operator does without what is lost.
  void dismiss();

  /// A new daemon: it has the state files, without those of `damaged`. `still_lost`: of what the
  /// last one had set aside, what it has not saved again.
  void restart(const std::set<std::string>& damaged, const std::set<std::string>& still_lost);
  void forget(const std::string& pod);
  void doubt(const std::string& pod);
  /// Its VMM has ended, and the daemon has examined it.
  void end(const std::string& pod);
  void set_late(const std::string& pod);

  /// A CPU may be given to threads that do not have it.
  bool owners_are_known();
  /// CPUs that others own.
  policy::CpuSet foreign_to(const std::string& pod) const;
  /// Also CPUs of pods that the daemon may have forgotten.
  policy::CpuSet perhaps_foreign_to(const std::string& pod) const;
  /// Also CPUs that PodResources had assigned to pods whose VMM has ended unreported.
  policy::CpuSet perhaps_kept_from(const std::string& pod) const;
  bool owns(const KnownPod& pod, const KnownContainer& container) const;
  /// CPUs of its containers that run and own them.
  policy::CpuSet owned_by(const KnownPod& pod) const;

  const std::map<std::string, KnownPod>& pods() const { return pods_; }
  /// The pod, where it is certain that the daemon has it.
  const KnownPod* find(const std::string& id) const;

 private:
  const policy::ledger::Assignment* find_assigned(const KnownPod& pod,
                                                  const policy::ContainerFacts& container) const;
  bool is_prepared(const KnownContainer& container) const;
  bool is_allocatable(const policy::CpuSet& cpus) const;
  policy::CpuSet assigned_to_others(const std::string& id) const;
  policy::CpuSet unheld() const;
  bool is_listed(const KnownPod& pod, const policy::ContainerFacts& container) const;
  bool is_shared(const KnownPod& pod, const policy::CpuSet& cpus) const;

  std::set<policy::ledger::Source> sources_, silent_, reported_;
  std::optional<std::vector<policy::ledger::Claim>> claims_;
  policy::ledger::ResourcesSeen resources_;
  std::optional<std::vector<policy::ledger::PreparedClaim>> prepared_;
  std::map<std::string, KnownPod> pods_;
  policy::CpuSet perhaps_assigned_;              ///< by PodResources, to pods whose VMM has ended
  std::set<std::string> lost_, reported_again_;  ///< pods whose state is damaged; told of since
  bool expired_ = false, known_ = true;
  bool dismissed_ = false;  ///< an operator does without what is lost
  bool outdated_ = false;   ///< `claims_`: what is not among them may be so all the same
};

}  // namespace ka::model
