// The ledger: everything that the sources told, folded into one record a pod. It answers who owns
// which CPU. Order, repetition and source of events leave no trace in it but the last word said of
// each thing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/ledger/event.hpp"

namespace ka::policy {

struct ContainerRecord {
  ContainerFacts facts;
  Source source = Source::kApi;        ///< who told the facts
  std::optional<bool> told_exclusive;  ///< where somebody said so; else facts.exclusive is judged

  bool operator==(const ContainerRecord&) const = default;
};

struct PodRecord {
  std::string id;
  std::string pod_uid;
  std::string pod_name;
  std::string handler;
  std::optional<int> vmm_pid;  ///< present: a VM sandbox
  std::string cgroup;
  std::string qmp_socket;
  std::string agent;
  std::string domain;
  Source source = Source::kApi;
  std::map<std::string, ContainerRecord> containers;
  std::vector<Override> overrides;

  bool operator==(const PodRecord&) const = default;

  /// CPUs exclusive to this pod's containers: also those of exited ones, which stay reserved.
  CpuSet exclusive_cpus() const;
};

/// What an event changed.
struct Change {
  bool any = false;
  std::string sandbox;         ///< the pod concerned; empty for node-wide events
  bool exclusive_map = false;  ///< who owns which CPU changed: every sandbox is planned again
};

class Ledger {
 public:
  /// Folds one event. An event about an unknown pod's container creates the pod's record, since
  /// sources may overtake each other.
  Change apply(const Event& event);

  /// Takes a whole record back, as it was before a restart.
  void restore(PodRecord pod);

  const PodRecord* find(std::string_view id) const;
  const std::map<std::string, PodRecord, std::less<>>& pods() const { return pods_; }

  /// CPUs that containers of pods other than `id` own exclusively. A CPU that two pods claim is in
  /// the answer for both: nobody may use it until the claim is settled.
  CpuSet exclusive_to_others(std::string_view id) const;
  /// All CPUs that any pod owns exclusively.
  const CpuSet& exclusive() const { return exclusive_; }

  /// kubelet's shared pool where it was told, else `online` minus every exclusive CPU.
  CpuSet shared_pool(const CpuSet& online) const;
  const std::optional<CpuSet>& told_shared_pool() const { return kubelet_.shared_pool; }

 private:
  bool fold(const PodSeen& event, Source source);
  bool fold(const PodGone& event, Source source);
  bool fold(const ContainerSeen& event, Source source);
  bool fold(const ContainerExited& event, Source source);
  bool fold(const ContainerGone& event, Source source);
  bool fold(const KubeletSeen& event, Source source);
  bool fold(const OverrideSet& event, Source source);

  PodRecord& record(const std::string& id, Source source);
  bool judge(const PodRecord& pod, const ContainerRecord& container) const;
  bool listed(const PodRecord& pod, const ContainerFacts& container) const;
  bool shared_with_another_pod(const PodRecord& pod, const CpuSet& cpus) const;
  bool judge_all();
  bool find_owners();
  std::string owner_of(const Claim& claim) const;

  std::map<std::string, PodRecord, std::less<>> pods_;
  KubeletSeen kubelet_;  ///< what it said last
  /// Exclusive CPUs by owner: a pod's uid, or where it has none its id.
  std::map<std::string, CpuSet> owners_;
  CpuSet exclusive_;
  CpuSet contested_;  ///< claimed by more than one pod
};

/// kubelet's rule seen from a container's spec: a quota of exactly as many whole CPUs as the cpuset
/// has means Guaranteed with integer CPUs.
bool exclusive_by_quota(const ContainerFacts& container);

/// The plain facts of a pod for plan(), containers by ascending id; vCPUs, iothreads and cgroup are
/// for the engine to add.
SandboxFacts to_sandbox_facts(const PodRecord& pod);

}  // namespace ka::policy
