// SPDX-License-Identifier: Apache-2.0
// The ledger: everything that the sources reported, folded into one record a pod. It answers who
// owns which CPU. Order, repetition and source of events leave no trace in it but the last report
// of each value by the source that knows most of it (docs/understand/sources.md, "Which source
// decides").
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/grade.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/facts/resource_class.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/ledger/assignments.hpp"
#include "policy/ledger/ended.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/owners.hpp"
#include "policy/ledger/ownership.hpp"
#include "policy/ledger/prepared.hpp"

namespace ka::policy::ledger {

struct ContainerRecord {
  ContainerFacts facts;
  Source source = Source::kApi;          ///< who reported the facts
  std::optional<bool> stated_exclusive;  ///< set by an operator; absent: facts.exclusive is decided
  /// Restored from the state file: what was decided before the restart. Absent once a source has
  /// reported the container again.
  std::optional<bool> exclusive_before;
  std::vector<PreparedClaim> claims{};  ///< that its environment names
  bool in_doubt = false;                ///< as decided: whether it owns its CPUs is not proved
  bool doubted_before = false;          ///< with `exclusive_before`: it was in doubt
  bool begun = false;                   ///< the last of its name whose creation or run was reported

  bool operator==(const ContainerRecord&) const = default;
};

struct PodRecord {
  std::string id;
  std::string pod_uid;
  std::string pod_name;
  std::string handler;
  std::optional<ProcessId> vmm;  ///< present: a VM sandbox
  bool vmm_from_state = false;   ///< no source has reported it since the start
  std::string cgroup;
  std::string qmp_socket;
  std::string agent;
  std::string domain;
  std::string requested_domain;  ///< of the pod itself (PodSeen); reported again after a restart
  Annotations annotations;
  GradeRequest requested_grade = GradeRequest::kNone;
  std::optional<ProcessId> proxy;  ///< the shim proxy before its shim
  std::optional<CpuSet> original_cpus;
  bool domain_pinned = false;  ///< libvirt's record of the domain has pins of ours, or may have
  Source source = Source::kApi;
  std::map<std::string, ContainerRecord> containers;
  std::vector<Pin> overrides;

  bool operator==(const PodRecord&) const = default;

  /// Its name as an owner of CPUs: its uid, or where it has none its id.
  const std::string& owner() const;
  /// CPUs exclusive to this pod's containers: also those of exited ones, which stay reserved.
  CpuSet exclusive_cpus() const;
  /// Forgets the VM and all that describes it. The containers keep their CPUs.
  void remove_vm();
};

/// What an event changed.
struct Change {
  bool any = false;
  std::string sandbox;  ///< the pod concerned; empty for node-wide events
  bool owners = false;  ///< who owns which CPU changed
  /// That, or where it is in doubt: every sandbox is planned again.
  bool exclusive_map = false;
  CpuSet taken;  ///< CPUs with a new owner
  /// Pods with a container that owns its CPUs now, or no longer, or whose doubt began or ended.
  std::set<std::string> ownership_changed;
  /// All that changed is that a shared container may use more CPUs: nobody has to leave any.
  bool only_widens = false;
  /// The pod that had the VM which this event reports of another pod; empty: none had.
  std::string former_pod;
};

class Ledger {
 public:
  /// Folds one event. An event about an unknown pod's container creates the pod's record, since
  /// sources may overtake each other. A VM that it reports is taken from a pod that has it by its
  /// state file alone.
  Change apply(const Event& event);

  /// Takes a whole record back, as it was before a restart. What has been reported of the pod since
  /// counts, beside what has not.
  void restore(PodRecord pod);

  /// Whether a source is connected. While it is, reports of sources that know less do not replace
  /// what it reported of a container; afterwards every report does.
  void set_connected(Source source, bool connected);

  /// VMMs of pods that are not gone yet.
  EndedVmms& ended() { return ended_; }
  const EndedVmms& ended() const { return ended_; }

  const PodRecord* find(std::string_view id) const;
  /// The pod other than `id` whose VM this is; null: none.
  const PodRecord* find_holder(const ProcessId& vmm, std::string_view id) const;
  const std::map<std::string, PodRecord, std::less<>>& pods() const { return pods_; }

  /// CPUs that containers of pods other than `id` own exclusively. A CPU that two pods claim is in
  /// the result for both: neither may use it until one gives it up.
  CpuSet exclusive_to_others(std::string_view id) const;
  /// CPUs that the pod `id` owns, as kubelet's claims have it also before its containers are known.
  CpuSet exclusive_to(std::string_view id) const;
  /// All CPUs that any pod owns exclusively.
  const CpuSet& exclusive() const { return owners_.all(); }
  /// CPUs that more than one pod owns exclusively.
  const CpuSet& contested() const { return owners_.contested(); }
  /// CPUs that have no owner and that a container of a pod other than `id` may own: no source
  /// decides, and its spec proves nothing. Nobody else is to be let onto them. A pod whose set has
  /// all of `online` does not count: kubelet reserves some for itself. (Those of a container that
  /// is in doubt and taken for an owner are exclusive.)
  CpuSet doubted_to_others(std::string_view id, const CpuSet& online) const;
  /// The same, to any pod.
  CpuSet doubted(const CpuSet& online) const {
    return doubts_.of_others({}, online) - owners_.all();
  }

  /// kubelet's claims on CPUs that no container owns which a source has reported: of pods that are
  /// admitted and not yet there, or not yet gone from the file. Where PodResources decides, its
  /// assignments, with the pod's name as uid where no such pod is known.
  std::vector<Claim> unreported_claims() const;

  /// Prepared claims on CPUs that no container owns which names the claim: before it starts, and
  /// after it is removed.
  std::vector<PreparedClaim> unheld_claims() const;

  /// Whether a container of the pod owns its CPUs, and the evidence.
  Ownership ownership_of(const PodRecord& pod, const ContainerRecord& container) const;
  /// kubelet's state is missing or outdated: PodResources decides where it has an answer.
  bool lacks_claims() const { return !kubelet_.claims || kubelet_.outdated; }
  /// kubelet's state as reported last.
  const KubeletSeen& kubelet() const { return kubelet_; }
  const Assignments& assignments() const { return assignments_; }
  const Prepared& prepared() const { return prepared_; }
  /// The one pod of that name; null: none, or more than one has it, and a name proves nothing.
  const PodRecord* find_named(const std::string& name) const;

  /// kubelet's shared pool if it was reported, else `online` minus every exclusive CPU.
  CpuSet shared_pool(const CpuSet& online) const;
  const std::optional<CpuSet>& reported_shared_pool() const { return kubelet_.shared_pool; }

 private:
  bool fold(const PodSeen& event, Source source);
  bool fold(const PodGone& event, Source source);
  bool fold(const ContainerSeen& event, Source source);
  bool fold(const ContainerExited& event, Source source);
  bool fold(const ContainerGone& event, Source source);
  bool fold(const KubeletSeen& event, Source source);
  bool fold(const ResourcesSeen& event, Source source);
  bool fold(const PreparedSeen& event, Source source);
  bool fold(const OverrideSet& event, Source source);
  std::optional<ContainerFacts> facts_of(const std::string& pod,
                                         const std::string& container) const;

  /// What an event may have changed beyond the record that it is about.
  struct Touched {
    std::set<std::string> owners;  ///< pods' uids, or their ids
    std::set<std::string> names;   ///< of pods, that came, went or were assigned something
    std::set<CpuSet> sets;         ///< that the pod's containers had before it, or have after it
  };
  /// What another decision about a pod's containers changed.
  struct Decided {
    bool owners = false, doubts = false;
  };
  /// Pods by name and uid, so that an event need not visit all of them.
  struct Index {
    std::map<std::string, std::set<std::string>> by_owner;
    std::map<std::string, std::set<std::string>> by_container;
    std::map<std::string, std::set<std::string>> by_name;
    std::map<std::string, std::set<std::string>> by_claim;  ///< named by a container's environment
    /// By a container's set: those in which it has not exited, and those in which its quota or its
    /// request says that it is its own, or neither is known.
    std::map<CpuSet, std::set<std::string>> users, claimants;
  };

  PodRecord& record(const std::string& id, Source source);
  std::string withdraw_vm(const EventBody& body);
  bool fold_and_index(const Event& event, const std::string& pod, Touched& touched);
  bool keeps_index(const EventBody& body) const;
  void add_to_index(const std::string& id, Touched& touched);
  void remove_from_index(const std::string& id, Touched& touched);
  void touch(const PodRecord& pod, Touched& touched) const;
  void touch_holders(const std::string& container, Touched& touched) const;
  void touch_claims(const KubeletSeen& before, Touched& touched) const;
  void touch_prepared(const Prepared& before, Touched& touched) const;
  void touch_all(Touched& touched) const;
  void add_owners_by_name(Touched& touched) const;
  void add_reported(const PodRecord& reported);
  bool fold_container(const ContainerSeen& event, Source source);
  void divide_masks(Touched& touched, Change& change);
  CpuSet owned_of_mask(const PodRecord& pod, const CpuSet& mask) const;
  CpuSet claimed_by(const PodRecord& pod) const;
  void finish(Touched touched, Change& change);
  std::set<std::string> pods_of(const Touched& touched) const;
  Decided update_ownership(PodRecord& pod) const;
  std::optional<Ownership> ownership_by_kubelet(const PodRecord& pod,
                                                const ContainerRecord& container) const;
  std::optional<Ownership> ownership_by_claims(const ContainerRecord& container) const;
  std::optional<Ownership> ownership_by_resources(const PodRecord& pod,
                                                  const ContainerRecord& container) const;
  Ownership ownership_by_request(const PodRecord& pod, const ContainerFacts& container,
                                 bool is_own) const;
  bool outranks(const ContainerRecord& known, Source source) const;
  bool is_claimed(const PodRecord& pod, const ContainerFacts& container) const;
  bool shared_within(const PodRecord& pod, const ContainerFacts& container) const;
  bool shared_with_another_pod(const PodRecord& pod, const CpuSet& cpus) const;
  bool has_reserved(const CpuSet& cpus) const;
  bool has_rest(const CpuSet& cpus) const;
  bool has_last_pool(const CpuSet& cpus) const;
  bool withholds(const ContainerRecord& container) const;
  CpuSet doubted_by(const std::string& owner) const;
  CpuSet owned_by(const std::string& owner) const;
  CpuSet assigned_to(const std::string& owner) const;
  CpuSet unheld(const PreparedClaim& claim) const;
  std::string owner_of(const Claim& claim) const;
  void add_unreported_assignments(std::vector<Claim>& claims) const;

  std::map<std::string, PodRecord, std::less<>> pods_;
  Index index_;
  KubeletSeen kubelet_;                 ///< its last report
  Source assigner_ = Source::kKubelet;  ///< whose report that is
  Assignments assignments_;
  Prepared prepared_;
  EndedVmms ended_;
  Owners owners_;  ///< by a pod's uid, or where it has none its id; by claim_owner()
  Owners doubts_;  ///< who may own which CPU, by the same
  std::set<Source> connected_;
};

/// kubelet's rule seen from a container's spec: a quota of exactly as many whole CPUs as the cpuset
/// has means Guaranteed with integer CPUs.
bool exclusive_by_quota(const ContainerFacts& container);

/// The same where kubelet lifts the quota: the shares of exactly as many whole CPUs. A burstable
/// container that requests the whole shared pool is indistinguishable: alone it proves nothing.
/// (MilliCPUToShares() in pkg/kubelet/cm/helpers_linux.go has a maximum.)
bool exclusive_by_request(const ContainerFacts& container);

/// Its source reports neither quota nor shares, as that of a sandbox's mask: its set may be its
/// own.
bool is_unexplained(const ContainerFacts& container);

/// The plain facts of a pod for plan(), containers by ascending id; vCPUs, iothreads and cgroup are
/// for affinity/line to add.
SandboxFacts to_sandbox_facts(const PodRecord& pod);

}  // namespace ka::policy::ledger
