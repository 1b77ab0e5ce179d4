// SPDX-License-Identifier: Apache-2.0
// plan(): facts in, placement out. Pure: the same facts, settings and previous plan give the same
// plan, byte for byte.
//
// The invariants I1-I8 of docs/develop/architecture.md hold for every plan that comes out of here;
// check_plan() (invariants.hpp) finds which ones a set of placements breaks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/settings.hpp"

namespace ka::policy::plan {

/// Why a plan is as it is (reasons) or less than requested (warnings). The messages
/// are elsewhere; `subject`, `cpus`, `other` and `number` fill them in.
enum class Code {
  // reasons
  kDedicated,               ///< subject container: its vCPUs have one CPU of `cpus` each
  kFloating,                ///< `number` vCPUs float on `cpus`
  kSharedContainer,         ///< subject container shares the floating vCPUs
  kBornNear,                ///< no container is known: the pod's CPUs and the pool's near them
  kUnconstrained,           ///< no container has a cpuset: all CPUs but others' exclusive ones
  kHousekeepingSandbox,     ///< housekeeping is the sandbox mask minus dedicated CPUs: `cpus`
  kHousekeepingSharedPool,  ///< housekeeping is the node's shared pool: `cpus`
  kHousekeepingCpus,        ///< housekeeping is the configured set: `cpus`
  kHousekeepingIsolate,     ///< housekeeping has a core of its own: `cpus`
  kForeignCpusRemoved,      ///< `cpus` of the mask are exclusive to other pods and were left out
  kKeptFromBefore,          ///< subject container kept the vCPUs it had
  kIsolatedCpus,            ///< threads were given one isolated CPU instead of floating over `cpus`
  kVcpusLeftAlone,          ///< vcpu_pinning = "none"
  kVcpusOnMask,             ///< vcpu_pinning = "mask"
  kOverrideByHand,          ///< subject thread has the set an operator gave it: `cpus`
  // warnings
  kNotIsolated,          ///< `cpus` (of dedicated vCPUs) also carry housekeeping
  kTooFewVcpus,          ///< subject container: `number` vCPUs for `cpus`: group affinity
  kVcpuShared,           ///< subject container has no vCPU of its own, shares vCPU `number`
  kNoFloatingVcpu,       ///< guest kernel and shared containers share vCPU `number`
  kCpusUnusable,         ///< subject container: `cpus` are offline or refused by the cgroup
  kCpusContested,        ///< `cpus` are claimed as exclusive by another pod too
  kNoUsableCpu,          ///< subject: none of its CPUs may be used; `number` 1: nor any other
  kHousekeepingRefused,  ///< subject role: its housekeeping `cpus` cannot be used; as "sandbox"
  /// subject roles: their cgroup allows none of the housekeeping `cpus`; as "sandbox". `number` 0:
  /// cgroup = "manage" would fix it; 1: it is managed, and the cgroup above it refuses them.
  kHousekeepingConfined,
  kIsolateImpossible,  ///< too few cores to set one aside; as "sandbox"
  kOverrideRefused,    ///< subject thread: the set given by hand holds no usable CPU
};

/// "dedicated", "too-few-vcpus", ...: stable names for machines.
std::string_view code_name(Code code);

struct Note {
  Code code = Code::kFloating;
  std::string subject;
  CpuSet cpus;
  int number = 0;

  bool operator==(const Note&) const = default;
};

enum class VcpuRole { kDedicated, kFloating };

struct VcpuPlan {
  int index = 0;
  CpuSet cpus;
  VcpuRole role = VcpuRole::kFloating;
  /// The exclusive container it serves, alone (dedicated) or in a group (floating), or is held for
  /// (floating) while that may use none of its CPUs; else empty.
  std::string container;
  /// False with vcpu_pinning = "none": `cpus` is what it may use, and is not written.
  bool placed = true;

  bool operator==(const VcpuPlan&) const = default;
};

struct ContainerPlan {
  std::string id;
  std::string name;
  VcpuSet vcpus;
  bool dedicated = false;  ///< it has one dedicated vCPU for each of its CPUs

  bool operator==(const ContainerPlan&) const = default;
};

struct SandboxPlan {
  std::string id;
  std::string pod_uid;
  CpuSet mask;                  ///< the plain OR of the containers' cpusets
  NodeSet mems;                 ///< the OR of the containers' mems, else the nodes of the mask
  CpuSet housekeeping;          ///< the default set of everything but dedicated vCPUs
  std::vector<VcpuPlan> vcpus;  ///< by index
  /// None of a role that goes with a vCPU; of kIothread: for iothreads whose id is not known.
  ByRole<CpuSet> roles;
  std::map<std::string, CpuSet> iothreads;  ///< by iothread id
  /// Of passed-through devices, by the device's id; none for those that are left alone.
  std::map<std::string, CpuSet> interrupts;
  CpuSet cgroup;                          ///< what its cgroup is to allow; empty: not ours to write
  std::vector<ContainerPlan> containers;  ///< by id
  std::vector<Note> reasons, warnings;

  bool operator==(const SandboxPlan&) const = default;

  const VcpuPlan* find_vcpu(int index) const;
  /// The planned set of a thread; nullptr for a vCPU that the plan does not know or leaves
  /// alone.
  const CpuSet* cpus_for(const ThreadFacts& thread) const;
};

/// What one sandbox's plan needs to know of the rest of the node.
struct NodeView {
  const Topology& topology;
  /// kubelet's shared pool, or all CPUs that no exclusive container owns.
  CpuSet shared_pool;
  /// CPUs that are exclusive to containers of other pods, VM sandboxes or not.
  CpuSet exclusive_to_others;
  /// By CPU number: floating vCPUs of other sandboxes there ("balanced" levels them); may be
  /// shorter than the machine.
  std::vector<int> floating_load;
  /// CPUs that kubelet gave to containers of this pod alone, also while none of them is known.
  CpuSet owned{};
  /// Where its floating vCPUs are; null: where the previous plan has them.
  const SandboxPlan* current = nullptr;
};

/// Plans one sandbox. `previous` (may be null) is only ever consulted for which vCPU serves which
/// CPU, so that a container keeps its vCPUs when others come and go.
///
/// An empty set in the result means that the sandbox has no CPU on which that thread may run
/// without trespassing: it is left where it is, with a warning.
SandboxPlan plan_sandbox(const NodeView& node, const SandboxFacts& sandbox,
                         const Settings& settings, const SandboxPlan* previous);

/// A whole node at one moment.
struct Snapshot {
  Topology topology;
  CpuSet shared_pool;                   ///< empty: all CPUs that no exclusive container owns
  CpuSet exclusive_elsewhere;           ///< exclusive to pods that are no VM sandboxes
  std::vector<SandboxFacts> sandboxes;  ///< by ascending id
};

struct Plan {
  std::vector<SandboxPlan> sandboxes;  ///< by ascending id

  bool operator==(const Plan&) const = default;
  const SandboxPlan* find(std::string_view id) const;
};

/// How each sandbox of a snapshot sees the node, in the snapshot's order and without the load of
/// floating vCPUs. CPUs of exited exclusive containers count as theirs; a CPU that two pods claim
/// belongs to others for both. The views refer to the snapshot's topology.
std::vector<NodeView> node_views(const Snapshot& snapshot);

/// Adds the vCPUs that a plan binds to one CPU without dedicating it to them: what "balanced"
/// levels. `load` is by CPU number and grows as needed.
void add_floating_load(std::vector<int>& load, const SandboxPlan& plan);

/// One of the plan's floating vCPUs would share its CPU with fewer on another one of its
/// housekeeping: under "balanced" a neighbour came or went since it was made.
bool crowded(const NodeView& node, const SandboxPlan& plan);

/// Plans every sandbox of a node. A previous sandbox plan is found by pod uid, else by id.
///
/// With "balanced", sandboxes give way to those planned after them until none is crowded.
Plan plan(const Snapshot& snapshot, const Settings& settings, const Plan* previous);

}  // namespace ka::policy::plan
