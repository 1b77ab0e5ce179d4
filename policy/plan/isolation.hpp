// SPDX-License-Identifier: Apache-2.0
// Which exclusive containers have their CPUs to themselves, and the obstacles in the
// others. The invariants can all hold while a container is not isolated: a plan with less to
// give than was asked for is kept as well as any other.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/guest.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/invariants.hpp"
#include "policy/plan/plan.hpp"
#include "policy/plan/settings.hpp"

namespace ka::policy::plan {

/// What keeps a container from being isolated.
enum class Obstacle {
  kDisabled,          ///< enable = false: nothing is placed
  kReleased,          ///< its sandbox is released: nothing is placed
  kObserved,          ///< mode = "observe": nothing is written
  kNotPinned,         ///< vcpu_pinning gives no vCPU a CPU of its own
  kTooFewVcpus,       ///< `cpus` have no vCPU of their own
  kNoFloatingVcpu,    ///< the guest's kernel has no vCPU but the one of `cpus`
  kCpusUnusable,      ///< `cpus` are offline, or its cgroup does not allow them
  kCpusContested,     ///< others, named in `subject` where known, own `cpus` as well
  kHousekeeping,      ///< threads that serve no container may run on `cpus`: roles in `subject`
  kKernelThread,      ///< threads that the kernel binds may run on `cpus`: named in `subject`
  kFloatingVcpu,      ///< vCPUs of others may run on `cpus`: named in `subject`
  kSharedContainer,   ///< containers without CPUs of their own use its vCPUs: ids in `subject`
  kPinnedByHand,      ///< pins by hand, named in `subject`
  kGuestSilent,       ///< no agent answers in the guest
  kGuestUnconfirmed,  ///< the guest's side is not known: why is in `subject`
  kGuestElsewhere,    ///< in the guest its threads may run on other vCPUs
};

/// "housekeeping", "too-few-vcpus", ...: stable names for machines.
std::string_view obstacle_name(Obstacle obstacle);

inline constexpr Obstacle kObstacles[] = {
    Obstacle::kDisabled,      Obstacle::kReleased,      Obstacle::kObserved,
    Obstacle::kNotPinned,     Obstacle::kTooFewVcpus,   Obstacle::kNoFloatingVcpu,
    Obstacle::kCpusUnusable,  Obstacle::kCpusContested, Obstacle::kHousekeeping,
    Obstacle::kKernelThread,  Obstacle::kFloatingVcpu,  Obstacle::kSharedContainer,
    Obstacle::kPinnedByHand,  Obstacle::kGuestSilent,   Obstacle::kGuestUnconfirmed,
    Obstacle::kGuestElsewhere};

/// The remedy for an obstacle.
enum class Remedy {
  kReconcile,     ///< place it again
  kEnable,        ///< enable = true
  kFollow,        ///< mode = "follow"
  kPinning,       ///< vcpu_pinning = "dedicated"
  kMoreVcpus,     ///< a vCPU for each owned CPU, and one more
  kSharedPool,    ///< housekeeping = "shared-pool"
  kManageCgroup,  ///< cgroup = "manage"
  kIsolate,       ///< housekeeping = "isolate", and one core more
  kCgroupCpus,    ///< the cgroup, or CPUs that were taken offline
  kOneOwner,      ///< kubelet's state: one of the pods must give the CPUs up
  kNewerKernel,   ///< a kernel that does not bind the thread, or a VMM without it
  kUnpin,         ///< remove the pin
  kGuestAgent,    ///< our agent in the guest image
  kContainers,    ///< a source that reports containers: NRI, or the shim proxy
};

struct NotIsolated {
  Obstacle obstacle = Obstacle::kHousekeeping;
  std::string subject;  ///< names, in order, with ", " between; may be empty
  CpuSet cpus;
  Remedy remedy = Remedy::kReconcile;

  bool operator==(const NotIsolated&) const = default;
};

struct ContainerIsolation {
  std::string container;  ///< id
  std::string name;
  CpuSet cpus;                          ///< that it owns
  bool guest_by_configuration = false;  ///< guest = "none": placement in the guest is not checked
  std::vector<NotIsolated> obstacles;   ///< by obstacle, each once; empty: it is isolated

  bool isolated() const { return obstacles.empty(); }
  bool operator==(const ContainerIsolation&) const = default;
};

/// How what is placed on the host reaches the kernel.
enum class Placing { kWritten, kObserved, kReleased, kDisabled };

/// What is known of a guest's side. `report` may be null.
struct GuestSide {
  bool connected = false;
  bool current = false;  ///< the report answers the request
  const GuestSpec* spec = nullptr;
  const GuestReport* report = nullptr;
  const std::map<std::string, GuestDoubt>* doubts = nullptr;  ///< by container; may be null
};

/// Each exclusive container of a sandbox that has not exited, by id. `threads` have the masks that
/// the kernel reported: what may run on a container's CPUs is decided by these, not by the plan.
std::vector<ContainerIsolation> isolation_of(const NodeView& node, const SandboxFacts& sandbox,
                                             const Settings& settings, const SandboxPlan& plan,
                                             const std::vector<ActualThread>& threads,
                                             const GuestSide& guest, Placing placing);

}  // namespace ka::policy::plan
