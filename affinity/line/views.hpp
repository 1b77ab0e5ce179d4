// SPDX-License-Identifier: Apache-2.0
// Read-only views of the line's state for the API. Pointers and references are
// valid until the line is next called.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "affinity/board/partition_view.hpp"
#include "affinity/board/rdt_view.hpp"
#include "affinity/board/views.hpp"
#include "policy/facts/interrupts.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/plan/isolation.hpp"
#include "policy/plan/plan.hpp"
#include "policy/plan/quiet.hpp"
#include "policy/plan/resource_classes.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::line {

/// One thread as it was last seen.
struct ThreadView {
  policy::ThreadFacts facts;
  policy::CpuSet wanted;  ///< what the plan gives it; empty: left where it is
  policy::CpuSet actual;  ///< the kernel's mask when last read
  /// False when the kernel refused for good (EPERM) or the plan leaves the thread alone.
  bool managed = true;
  /// False when it could not be read when it was last observed: `actual` is from before, and it is
  /// only narrowed, once its identity and mask can be read.
  bool seen = true;
  std::string problem;  ///< why it is not as planned; empty if it is

  bool drifted() const { return seen && managed && !wanted.empty() && wanted != actual; }
};

/// One interrupt of a passed-through device as it was last seen.
struct InterruptView {
  policy::InterruptFacts facts;
  policy::CpuSet wanted;  ///< where the plan sends it; empty: left where it is
  /// False when the kernel refused for good, others share it, or the plan leaves it alone.
  bool managed = false;
  /// False when it could not be read when it was last observed: `facts` are from before, and it is
  /// not written to.
  bool seen = true;
  std::string problem;  ///< why it is not routed as wanted; empty if it is

  bool drifted() const { return seen && managed && wanted != facts.cpus; }
  /// "interrupt 24 (vfio-msix[0](0000:01:00.0))", for display.
  std::string name() const {
    return "interrupt " + std::to_string(facts.number) + " (" + facts.name + ')';
  }
};

/// The nice value of a vCPU's thread as it was last seen.
struct NiceView {
  policy::ThreadKey key;
  int vcpu = -1;
  std::optional<int> wanted;  ///< by a resource class; absent: left as it is
  std::optional<int> actual;  ///< absent: it could not be read
  std::string problem;        ///< why it is not as wanted; empty if it is
  std::string unread;         ///< why it could not be read; empty if it could

  bool drifted() const { return wanted && actual != wanted; }
  /// "nice 5 of vCPU 1 (thread 4711)", for display.
  std::string name() const {
    return "nice " + std::to_string(wanted.value_or(0)) + " of vCPU " + std::to_string(vcpu) +
           " (thread " + std::to_string(key.tid) + ')';
  }
};

/// The same of the weight of the sandbox's block I/O.
struct IoWeightView {
  std::optional<int> wanted;  ///< by a resource class; absent: left as it is
  std::optional<int> actual;  ///< absent: it has none, or it could not be read
  std::string problem;        ///< why it is not as wanted; empty if it is
  std::string unread;         ///< why it could not be read; empty if it could

  bool drifted() const { return wanted && actual != wanted; }
  std::string name() const {
    return "block I/O weight " + std::to_string(wanted.value_or(0)) + " of its cgroup";
  }
};

/// The same of its limits for one disk, in the form of policy::IoLimits.
struct IoMaxView {
  std::string disk;
  std::optional<std::string> wanted;  ///< by a resource class
  std::optional<std::string> actual;  ///< absent: it has none, or they could not be read
  std::string problem;                ///< why they are not as wanted; empty if they are
  std::string unread;                 ///< why they could not be read; empty if they could

  bool drifted() const { return wanted && actual != wanted; }
  std::string name() const {
    return "block I/O limit of disk " + disk + " (" + wanted.value_or("") + ") of its cgroup";
  }
};

/// The RDT class that a vCPU's thread is to have.
struct RdtVcpu {
  policy::ThreadKey key;
  int vcpu = -1;
  std::string name;
};

/// Resource classes.
struct ClassView {
  std::vector<policy::plan::RequestedClass> requests;
  std::vector<NiceView> nice;  ///< of the vCPUs; empty where no class is or was asked for
  IoWeightView io_weight;
  std::vector<IoMaxView> io_max;  ///< of the disks that a class names
  std::vector<RdtVcpu> rdt;       ///< of the vCPUs that have one; what comes of it: line/rdt.hpp
};

/// Of a pod whose grade is quiet or realtime, or that requests a grade which it does not get.
struct SandboxGrade {
  policy::plan::Grade wanted = policy::plan::Grade::kBestEffort;
  std::optional<policy::plan::QuietObstacle> obstacle;  ///< absent: it is quiet
  std::optional<policy::plan::QuietObstacle> refused;   ///< its request; else absent
  std::string not_realtime;  ///< why it is quiet, and wanted realtime; else empty

  /// What it has.
  policy::plan::Grade in_force() const {
    if (obstacle || !policy::plan::is_quiet(wanted)) return policy::plan::Grade::kBestEffort;
    return not_realtime.empty() ? wanted : policy::plan::Grade::kQuiet;
  }

  /// Best-effort because of what is configured for it.
  bool is_by_configuration() const { return refused && obstacle == refused; }
};

/// A pod without a VM that has CPUs of its own and such a grade.
struct PlainPodView {
  const policy::ledger::PodRecord& pod;
  policy::CpuSet cpus;
  bool released = false;
  SandboxGrade grade;
  const board::PartitionView* partition = nullptr;  ///< null: it is to have none (yet)
};

struct SandboxView {
  const policy::ledger::PodRecord& pod;
  const policy::plan::SandboxPlan& plan;
  const std::vector<ThreadView>& threads;
  const std::vector<policy::VcpuFacts>& vcpus;
  const policy::plan::Settings& settings;
  vmm::GuestBoot boot;                        ///< as the VMM's monitor reports it
  const std::string& vcpu_source;             ///< which backend named the vCPUs
  const std::vector<std::string>& conflicts;  ///< where backends contradicted each other
  const std::vector<std::string>& unknown;    ///< threads with a role by elimination only
  const std::vector<std::string>& foreign;    ///< processes in its cgroup that are not its own
  const std::string& cgroup;                  ///< directory of its cpuset cgroup; may be empty
  const std::optional<policy::CpuSet>& cgroup_cpus;  ///< what that cgroup allows
  bool cgroup_managed = false;  ///< cgroup = "manage", and nothing is in its way
  /// What others wrote there, under what we wrote.
  const std::optional<policy::CpuSet>& cgroup_theirs;
  const std::string& cgroup_problem;  ///< why it is not managed although it should be
  const std::string& trouble;         ///< what cannot be read of it now; empty: it is seen
  bool released = false;  ///< released (`release`, `enable = false`): watched, not placed
  bool observed = false;  ///< mode = "observe": planned, nothing is written
  const board::GuestView* guest = nullptr;          ///< null: no agent is known
  const board::MemoryView* memory = nullptr;        ///< null until it was read
  const std::vector<policy::DeviceFacts>& devices;  ///< passed through
  const std::vector<InterruptView>& interrupts;     ///< of these
  /// Of each exclusive container that has not exited, by id.
  const std::vector<policy::plan::ContainerIsolation>& isolation;
  const ClassView& classes;
  const board::RdtView& rdt;                        ///< of the whole node
  std::optional<SandboxGrade> grade;                ///< absent: best-effort, as configured
  const board::PartitionView* partition = nullptr;  ///< null: it is to have none
  std::int64_t now = 0;  ///< seconds of the monotonic clock, as pins end by it

  bool moves_memory() const { return settings.move_memory && !released && !observed; }
};

}  // namespace ka::line
