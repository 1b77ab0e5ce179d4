// SPDX-License-Identifier: Apache-2.0
// A guest: its CPUs as its own kernel numbers them, the host's request, and
// the guest's report. Plain values, the same on both sides of the connection.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::policy {

/// One CPU of the guest. The number is the guest kernel's; only the hardware id identifies it
/// (x86: APIC id; arm64: MPIDR): kernels number plugged CPUs differently.
struct GuestCpu {
  int number = 0;
  std::optional<std::uint64_t> hardware_id;  ///< absent: offline, and never seen online
  int socket = 0;
  int core = 0;
  int thread = 0;
  int node = 0;
  bool online = false;

  bool operator==(const GuestCpu&) const = default;
};

/// A vCPU as the host wants the guest to treat it.
struct GuestVcpu {
  std::uint64_t hardware_id = 0;
  int index = 0;  ///< the VMM's
  CpuSet cpus;    ///< host CPUs that it runs on
  NodeSet nodes;  ///< their NUMA nodes
  bool dedicated = false;
  /// The guest's kernel, its services and containers without CPUs of their own may use it.
  bool common = true;

  bool operator==(const GuestVcpu&) const = default;
};

/// A container as the host wants the guest to place it.
struct GuestContainer {
  std::string id;
  std::string name;
  std::vector<std::uint64_t> hardware_ids;  ///< of its vCPUs, ascending; empty: those in common
  bool dedicated = false;
  /// It owns CPUs, and vCPUs of its own may still be plugged: until they are there it is not
  /// narrowed to less than what is in common, or it would be held on the wrong ones.
  bool waiting = false;
  bool lift_quota = false;  ///< no CFS quota in its cgroup

  bool operator==(const GuestContainer&) const = default;
};

/// The host's complete request to a guest. What it does not name is left as it would be without us.
struct GuestSpec {
  std::vector<GuestVcpu> vcpus;            ///< by hardware id
  std::vector<GuestContainer> containers;  ///< by id
  bool move_interrupts = true;             ///< off the vCPUs that are not in common
  bool halt_poll = false;                  ///< idle vCPUs poll for a while before they halt
  bool release = false;                    ///< undo everything

  bool operator==(const GuestSpec&) const = default;
};

/// CPUs by container id.
using GuestSets = std::map<std::string, GuestCpuSet>;

/// What was written into a guest, or is about to be, and was not undone. It outlives a restart
/// of the daemon, and the agent that was asked.
struct GuestWrites {
  std::string address;   ///< of the agent that was asked last
  bool by_kata = false;  ///< kata-agent was asked, in guest CPU numbers; else ours, in hardware ids
  GuestSets containers;

  bool operator==(const GuestWrites&) const = default;
};

/// Why it is not confirmed that a container of a guest runs where the plan wants it.
enum class GuestDoubt {
  kAgentAway,         ///< no agent answers
  kNumbersUncertain,  ///< the guest CPU of each vCPU is not known: it keeps all of them
  kVcpusMissing,      ///< vCPUs of its own are not plugged yet: it keeps what is in common
  kUnanswered,        ///< the agent was asked and has not confirmed
  kRefused            ///< the agent or the guest's kernel refuses it
};

/// "agent-away", "numbers-uncertain", "vcpus-missing", "unanswered", "refused".
std::string_view guest_doubt_name(GuestDoubt doubt);

/// How a container's processes are held on their CPUs.
enum class GuestMethod {
  kNone,
  kCgroupV2,
  kCgroupV1,
  kAffinity,
  kKataAgent  ///< requested from kata-agent, which reports no result
};

/// "none", "cgroup-v2", "cgroup-v1", "affinity", "kata-agent".
std::string_view guest_method_name(GuestMethod method);

/// Why a container is not as the host asked. As a code: no text of a guest is shown.
enum class GuestProblem {
  kNone,
  kNotFound,       ///< no cgroup of that container is there (yet)
  kVcpuMissing,    ///< some of its vCPUs are not online in the guest
  kNoVcpu,         ///< none of them is: it is left on the CPUs in common
  kRefused,        ///< the guest's kernel refused the cpuset
  kThreadsOutside  ///< some threads may run elsewhere
};

/// "", "not-found", "vcpu-missing", "no-vcpu", "refused", "threads-outside".
std::string_view guest_problem_name(GuestProblem problem);

struct GuestProcess {
  int pid = 0;
  std::string name;
  int threads = 0;
  GuestCpuSet cpus;  ///< where any of its threads may run

  bool operator==(const GuestProcess&) const = default;
};

/// A container as the guest's kernel has it now.
struct GuestContainerState {
  std::string id;
  GuestCpuSet wanted;  ///< what the host requests, in guest numbers
  GuestCpuSet actual;  ///< what its cgroup allows; without one where its threads may run
  GuestMethod method = GuestMethod::kNone;
  GuestProblem problem = GuestProblem::kNone;
  int threads = 0;
  int outside = 0;                      ///< threads that may run elsewhere
  std::vector<GuestProcess> processes;  ///< the first few of them, by pid
  bool quota_lifted = false;

  bool operator==(const GuestContainerState&) const = default;
};

/// What the guest's idle vCPUs do before they halt.
enum class GuestIdle {
  kAsBefore,     ///< what they did without us
  kPolling,      ///< they poll for a while (the cpuidle driver "haltpoll")
  kNoDriver,     ///< as before: the guest was booted without that driver
  kOtherDriver,  ///< as before: another driver of cpuidle is in use
  kRefused       ///< as before: the guest's kernel does not let the driver poll
};

/// "as-before", "polling", "no-driver", "other-driver", "refused".
std::string_view guest_idle_name(GuestIdle idle);

struct GuestReport {
  std::uint64_t generation = 0;  ///< another one whenever anything below changed
  std::vector<GuestCpu> cpus;    ///< by number
  GuestCpuSet common;            ///< where everything but containers of their own runs
  std::vector<GuestContainerState> containers;  ///< by id
  int interrupts_moved = 0;
  int interrupts_stuck = 0;  ///< the kernel does not let them be moved
  int kernel_threads_moved = 0;
  int kernel_threads_stuck = 0;
  bool services_moved = false;  ///< kata-agent and systemd's services are off the others' vCPUs
  GuestIdle idle = GuestIdle::kAsBefore;
  /// It has what was requested of kata-agent, which reports no result: containers that may use
  /// every CPU are not in it.
  bool by_kata = false;

  bool operator==(const GuestReport&) const = default;
};

}  // namespace ka::policy
