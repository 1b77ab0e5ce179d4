// SPDX-License-Identifier: Apache-2.0
// Checks which of the invariants of docs/develop/architecture.md a plan, or what the kernel really
// has, breaks. It works from the facts and does not trust the plan: from the plan it takes only
// which vCPU is meant to be dedicated and which vCPUs serve which container.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/plan.hpp"
#include "policy/plan/settings.hpp"

namespace ka::policy::plan {

enum class Breach {
  kOutside,        ///< I1: may run outside (sandbox mask and housekeeping)
  kForeignCpu,     ///< I2: may run on a CPU that is exclusive to another pod
  kNotOneCpu,      ///< I3: a dedicated vCPU without exactly one CPU
  kCpuTaken,       ///< I3: two dedicated vCPUs on one CPU
  kNotAlone,       ///< I4: another thread of the sandbox on the CPU of a dedicated vCPU
  kNotDedicated,   ///< I4: a container without the dedicated vCPUs that it could have
  kVcpuNotOwn,     ///< I4: a container runs on vCPUs that serve another one
  kSiblingsApart,  ///< I5: swapping two vCPUs of one container would be better
  kUnstable,       ///< I6: planning again would move it
  kWidened,        ///< I8: a vCPU of an exclusive container runs outside its CPUs
  kNoVcpu,         ///< I8: a container without any vCPU
};

/// "outside", "foreign-cpu", ...: stable names for machines.
std::string_view breach_name(Breach breach);
/// The invariant's number, 1 to 8.
int invariant_of(Breach breach);

struct Violation {
  Breach breach = Breach::kOutside;
  std::string sandbox;
  /// "vCPU 3", "iothread io1", "emulator", "interrupts of 0000:01:00.0", or a container's id
  std::string subject;
  CpuSet cpus;  ///< the CPUs that are wrong; of kNotDedicated: those without a vCPU
  int tid = 0;  ///< the thread it was found at; 0: none, or only planned

  bool operator==(const Violation&) const = default;
};

/// The set of one thread, planned or read from the kernel.
struct Placement {
  Role role = Role::kEmulator;
  int vcpu_index = -1;  ///< of a vCPU
  std::string name;     ///< of an iothread: its id where known
  CpuSet cpus;
  int tid = 0;  ///< of a thread that was read; 0: planned

  bool operator==(const Placement&) const = default;
};

/// Every set of a plan but those it does not decide: vCPUs left alone, empty sets.
std::vector<Placement> placements_of(const SandboxPlan& plan);

/// A thread and its affinity according to the kernel.
struct ActualThread {
  ThreadFacts thread;
  CpuSet cpus;
};

/// I1 to I6 and I8 for a plan. Manually pinned threads are held to I2 alone.
std::vector<Violation> check_plan(const NodeView& node, const SandboxFacts& sandbox,
                                  const Settings& settings, const SandboxPlan& plan);

/// I1 to I5 and I8 for what the threads of a sandbox really may do: their affinity within what the
/// cgroup allows and what is online. Threads that the kernel binds are not held to them
/// (isolation_of() names those).
std::vector<Violation> check_actual(const NodeView& node, const SandboxFacts& sandbox,
                                    const Settings& settings, const SandboxPlan& plan,
                                    const std::vector<ActualThread>& threads);

/// A vCPU that is meant to be dedicated, with the set it has.
struct DedicatedVcpu {
  std::string sandbox;
  int index = 0;
  CpuSet cpus;
};

/// I3 over a whole node: the dedicated vCPUs of all of its sandboxes.
std::vector<Violation> check_dedicated(const std::vector<DedicatedVcpu>& vcpus);

}  // namespace ka::policy::plan
