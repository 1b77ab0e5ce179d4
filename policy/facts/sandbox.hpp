// SPDX-License-Identifier: Apache-2.0
// What is known of a sandbox, its containers and the threads of its VMM: plain values, produced by
// the sources of events and by vmm/, composed by affinity/line, read by plan().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/interrupts.hpp"
#include "policy/facts/role.hpp"

namespace ka::policy {

/// The one container of a sandbox whose mask alone is known. No guest has it.
inline constexpr std::string_view kSandboxMask = "sandbox-mask";
/// Beside it, where its pod owns only some of the mask: the others. That one has the pod's own.
inline constexpr std::string_view kSandboxRest = "sandbox-rest";

/// It stands for a mask, or for what is left of it.
constexpr bool is_mask(std::string_view container) {
  return container == kSandboxMask || container == kSandboxRest;
}

/// A container's spec, as UpdateContainer carries it.
struct ContainerFacts {
  std::string id;
  std::string name;  ///< pod-wide name; with the pod uid the key of stability (I6), may be empty
  CpuSet cpus;       ///< empty: no constraint
  NodeSet mems;      ///< empty: no constraint
  bool exclusive = false;
  std::int64_t quota = 0;   ///< CFS quota in microseconds a period; 0 or below: none
  std::int64_t period = 0;  ///< CFS period in microseconds
  std::int64_t shares = 0;  ///< CPU shares, 1024 for each CPU requested; 0: not reported
  /// It exited but was not removed: it leaves the mask; its CPUs stay reserved to its pod.
  bool exited = false;

  bool operator==(const ContainerFacts&) const = default;
};

/// A vCPU as the guest will see it. Kata's VMs have no SMT: core = index, thread = 0.
struct VcpuFacts {
  int index = 0;               ///< the VMM's cpu-index
  std::optional<int> apic_id;  ///< absent where no source knows it
  int socket = 0;
  int core = 0;
  int thread = 0;
  int numa = 0;

  bool operator==(const VcpuFacts&) const = default;
};

/// The identity of a thread, which a later thread with the same tid does not share.
struct ThreadKey {
  int pid = 0;  ///< thread group
  int tid = 0;
  std::uint64_t start_time = 0;  ///< clock ticks since boot, field 22 of /proc/<pid>/stat

  auto operator<=>(const ThreadKey&) const = default;
};

struct ThreadFacts {
  ThreadKey key;
  Role role = Role::kEmulator;
  int vcpu_index = -1;  ///< of a vCPU thread, and of what goes with a vCPU; else -1
  std::string name;     ///< an iothread's id where it is known, else the thread's name (comm)
  bool movable = true;  ///< false: the kernel refuses every mask for it (PF_NO_SETAFFINITY)

  bool operator==(const ThreadFacts&) const = default;
};

/// A manual pin: a set for one thread of a sandbox, until it is removed.
struct Override {
  Role role = Role::kVcpu;
  int vcpu_index = -1;   ///< for vCPUs
  std::string iothread;  ///< for iothreads: the id; empty for the role as a whole
  CpuSet cpus;

  bool operator==(const Override&) const = default;
};

/// plan()'s input for one sandbox.
struct SandboxFacts {
  std::string id;
  std::string pod_uid;  ///< may be empty: then the id takes its place
  /// Effective cpuset of the cgroup that its vCPUs are in; absent: all.
  std::optional<CpuSet> cgroup_cpus;
  /// The same for roles whose threads are in another cgroup: Kata leaves shim and virtiofsd outside
  /// the sandbox's where sandbox_cgroup_only is false, and with version 1 all but the vCPUs.
  std::map<Role, CpuSet> cgroup_by_role;
  /// The cgroup's cpuset is ours to write: `cgroup_cpus` is what it can be made to allow.
  bool cgroup_writable = false;
  std::vector<VcpuFacts> vcpus;            ///< by ascending index
  std::set<Role> roles;                    ///< of its threads; empty: unknown
  std::vector<std::string> iothreads;      ///< ids, sorted
  std::vector<ContainerFacts> containers;  ///< by ascending id
  std::vector<Override> overrides;
  std::vector<DeviceFacts> devices;  ///< passed through, by ascending id

  bool operator==(const SandboxFacts&) const = default;

  /// What the cgroup of a role's threads allows; nullptr: all. KVM's timer goes with its vCPU.
  const CpuSet* cgroup_of(Role role) const;
};

}  // namespace ka::policy
