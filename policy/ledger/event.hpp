// SPDX-License-Identifier: Apache-2.0
// What happened, as any source reports it: the API, NRI, the shim proxy, watchers. The ledger folds
// events, whatever their source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policy/facts/grade.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/facts/resource_class.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/ledger/source.hpp"

namespace ka::policy::ledger {

/// A pod exists. Fields that are empty or absent change nothing.
struct PodSeen {
  std::string id;  ///< sandbox id
  std::string pod_uid;
  std::string pod_name;  ///< "namespace/name"
  std::string handler;   ///< runtime handler
  /// A VM sandbox; absent for runc pods. Its start time is read at that moment: an operator names
  /// a number alone, which line::Requests completes.
  std::optional<ProcessId> vmm;
  std::string cgroup;      ///< path below the cgroup mount; empty: that of the VMM
  std::string qmp_socket;  ///< a QMP socket that is ours alone
  std::string agent;       ///< address of the guest agent
  std::string domain;      ///< name of the libvirt domain that the VM is, where it is one
  /// The same, as requested by the pod: granted only where the configuration allows it.
  std::string requested_domain;
  /// Resource classes, and tuning of its CPUs, that the pod asks for: granted only where the
  /// configuration allows it.
  Annotations annotations{};
  /// The same of grade = "quiet".
  GradeRequest requested_grade = GradeRequest::kNone;
  /// The shim proxy in front of its shim; absent: none is known. Completed as `vmm` is.
  std::optional<ProcessId> proxy;
  /// Where the shim proxy reports the pod: the CPUs that its processes would have been born with
  /// without the proxy, which narrowed itself before it started the shim.
  std::optional<CpuSet> original_cpus;
  /// libvirt's record of the domain has pins of ours, or is about to; false: no longer.
  std::optional<bool> domain_pinned;
};

struct PodGone {
  std::string id;
};

/// What a source reports of a container. What is empty or absent it does not report: what was known
/// stays, whichever source reported it.
struct ContainerSpec {
  std::string name;
  std::optional<CpuSet> cpus;   ///< an empty set: no constraint
  std::optional<NodeSet> mems;  ///< an empty set: no constraint
  std::optional<std::int64_t> quota;
  std::optional<std::int64_t> period;
  std::optional<std::int64_t> shares;
  std::optional<bool> exited;

  bool operator==(const ContainerSpec&) const = default;
};

/// Overwrites what the spec reports.
void merge(const ContainerSpec& spec, ContainerFacts& facts);

/// CPUs of a ResourceClaim: as dra-driver-cpu has prepared it, or as a container's environment has
/// it.
struct PreparedClaim {
  std::string uid;  ///< of the ResourceClaim
  CpuSet cpus;

  auto operator<=>(const PreparedClaim&) const = default;
};

/// A container exists, or its spec changed. Changes nothing where a source that knows more reported
/// the container and is still connected.
struct ContainerSeen {
  std::string sandbox;
  std::string id;
  ContainerSpec spec;
  /// Set by an operator; absent: decided by the ledger (Ledger::ownership_of).
  std::optional<bool> exclusive;
  /// What the container had before `spec`, where the source knows it: counts only for a container
  /// that is new to the ledger.
  ContainerSpec before;
  /// That its environment names; absent: not reported. Its author is the tenant: an entry counts
  /// only where the driver's own file has it too (Prepared::examine).
  std::optional<std::vector<PreparedClaim>> claims{};
  /// It is being created, or it runs: others of its name in the pod have ended or never started.
  /// (kubelet runs one container of a name at a time, and creates another one beside a container
  /// that was never started: ShouldContainerBeRestarted() in pkg/kubelet/container/helpers.go.)
  bool begins = false;
};

/// A report that leaves nothing out: it replaces all that was known of the container, but for a
/// name where it has none.
ContainerSeen whole_report(std::string sandbox, const ContainerFacts& facts,
                           std::optional<bool> exclusive = std::nullopt);

struct ContainerExited {
  std::string sandbox;
  std::string container;
};

struct ContainerGone {
  std::string sandbox;
  std::string container;
};

/// CPUs that kubelet assigned exclusively to a container, or to a pod as a whole.
struct Claim {
  std::string pod_uid;    ///< empty in kubelet's first format, which names containers by id
  std::string container;  ///< its name (its id without pod_uid); empty: the pod as a whole
  CpuSet cpus;

  auto operator<=>(const Claim&) const = default;
};

/// kubelet's state, whole: what it does not list is not so. Written at admission, it is the first
/// to report that a CPU has become exclusive.
struct KubeletSeen {
  std::optional<CpuSet> shared_pool;
  /// Sorted. Absent: kubelet reports no owners (no static policy, no file).
  std::optional<std::vector<Claim>> claims;
  /// The file is unreadable, and this is its last content: a claim still holds, but that
  /// a container has none proves nothing.
  bool outdated = false;

  /// Of `online`, what kubelet has neither in the shared pool nor given to a container: with
  /// strict-cpu-reservation its reserved CPUs. Empty where it reports no shared pool, or no owners.
  CpuSet withheld(const CpuSet& online) const;

  bool operator==(const KubeletSeen&) const = default;
};

/// Every claim that dra-driver-cpu has prepared and not yet unprepared, sorted: a claim's CPUs stay
/// exclusive in between, whether or not a container uses them.
struct PreparedSeen {
  std::vector<PreparedClaim> claims;

  bool operator==(const PreparedSeen&) const = default;
};

/// Devices of one resource that a container has.
struct AssignedDevices {
  std::string resource;  ///< "nvidia.com/gpu"
  int number = 0;
  NodeSet nodes;  ///< that they are near to; empty: not reported

  auto operator<=>(const AssignedDevices&) const = default;
};

/// A container in kubelet's PodResources API, which names pods and has no uids.
struct Assignment {
  std::string pod;        ///< "namespace/name"
  std::string container;  ///< empty: the pod as a whole
  CpuSet cpus;            ///< that it owns alone; empty: none
  std::vector<AssignedDevices> devices{};
  std::vector<std::string> claims{};  ///< uids of its claims on CPUs (dra-driver-cpu's), sorted

  auto operator<=>(const Assignment&) const = default;
};

/// The API's answer, whole. It is asked for, so it may be older than what has happened since.
struct ResourcesSeen {
  /// CPUs that kubelet may assign exclusively. Empty: it has no static policy, and `assignments`
  /// contain no CPUs.
  CpuSet allocatable;
  std::vector<Assignment> assignments;  ///< sorted

  bool operator==(const ResourcesSeen&) const = default;
};

/// A manual pin, with its author and its end.
struct Pin : Override {
  std::optional<std::uint32_t> uid;  ///< of the client that asked for it; absent: not known
  int pid = 0;                       ///< of that client then; 0: not known
  std::int64_t since = 0;            ///< seconds since 1970, for display
  /// Seconds of the monotonic clock, which a restart of the daemon does not set back (and which
  /// another boot does, but no pin outlives its boot). Absent: until it is removed.
  std::optional<std::int64_t> until;

  bool operator==(const Pin&) const = default;
};

/// A manual pin of a thread, set or (empty `cpus`) removed.
struct OverrideSet {
  std::string sandbox;
  Pin value;
  bool force = false;                     ///< also where it takes CPUs from exclusive containers
  std::optional<std::int64_t> lasts_for;  ///< seconds; absent: until it is removed
};

using EventBody = std::variant<PodSeen, PodGone, ContainerSeen, ContainerExited, ContainerGone,
                               KubeletSeen, ResourcesSeen, PreparedSeen, OverrideSet>;

struct Event {
  Source source = Source::kApi;
  EventBody body;
};

}  // namespace ka::policy::ledger
