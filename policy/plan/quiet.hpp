// SPDX-License-Identifier: Apache-2.0
// grade = "quiet": which CPUs the host is to be kept off, and what a sandbox has of it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/grade.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/quiet.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/settings.hpp"

namespace ka::policy::plan {

/// What the node's configuration says of grades, beside that of each handler.
struct QuietRules {
  CpuSet floor = {};  ///< CPUs that the host always keeps; empty: the default
  /// Their pods are quiet, or realtime, whatever the grade of their handler is.
  std::set<std::string, std::less<>> namespaces = {}, realtime_namespaces = {};
  int realtime_priority = 1;           ///< of SCHED_FIFO
  bool realtime_full_power = true;     ///< CPUs of realtime vCPUs never idle deeply or run slowly
  std::string realtime_rdtclass = {};  ///< of realtime vCPUs, unless their pod requests another one
  bool partitions = true;      ///< dedicated vCPUs of quiet sandboxes get a cpuset partition
  bool by_annotation = false;  ///< pods may request a grade that their handler's settings list
  bool tuning_by_annotation = false;  ///< the same of tuning of their CPUs

  bool has_namespaces() const { return !namespaces.empty() || !realtime_namespaces.empty(); }
  bool operator==(const QuietRules&) const = default;
};

/// One pod whose grade is quiet.
struct QuietClaim {
  std::string sandbox;  ///< the pod's id, also where it has no VM
  CpuSet cpus;          ///< those of its dedicated vCPUs, or without a VM of its containers

  bool operator==(const QuietClaim&) const = default;
};

/// Whether a whole core is among these CPUs.
bool has_core(const Topology& machine, const CpuSet& kept);

/// Those of the claims that leave the host its floor, in their order. Of others' CPUs, those that
/// have all theirs among `held` come first. An empty floor is one core, whichever it is.
std::vector<QuietClaim> claims_beside_floor(const Topology& machine,
                                            const std::vector<QuietClaim>& claims,
                                            const CpuSet& held, const CpuSet& floor);

/// What is to be asked for next, where `held` is granted already: everything, or (after all of it
/// together was refused) one newcomer at a time, so that it shows which of them is refused.
CpuSet next_request(const std::vector<QuietClaim>& claims, const CpuSet& held, bool one_by_one);

/// Why a pod is best-effort although its grade is quiet.
enum class NotQuiet {
  kDisabled,      ///< enable = false: nothing is done for it
  kReleased,      ///< it is released: nothing is done for it
  kObserved,      ///< mode = "observe": nothing is written
  kNotDedicated,  ///< no vCPU of it has a CPU of its own (yet)
  kOwnUnit,       ///< it runs in the host's unit `subject`, which cannot leave its CPUs
  kFloor,         ///< the host would be left without its floor
  kRefused,       ///< the helper refuses its CPUs: why is in `subject`
  kSilent,        ///< the helper does not answer: why is in `subject`
  kProblem,       ///< the helper can write nothing: why is in `subject`
  kPending,       ///< the helper has yet to answer
  kUnseen,        ///< the helper cannot see what may run there: which, and why, in `subject`
  kNotAllowed,    ///< its annotation requests the grade `subject`, and may not
  kNoGrade,       ///< its annotation names an unknown grade
  kUnitLeft,      ///< the host's units may still run there: which, and why, in `subject`
};

struct QuietObstacle {
  NotQuiet reason = NotQuiet::kPending;
  std::string subject = {};

  bool operator==(const QuietObstacle&) const = default;
};

/// What decides the grade of a pod.
struct GradeFacts {
  std::string_view pod_name;  ///< "namespace/name"; empty: not known
  GradeRequest request = GradeRequest::kNone;
  const Settings& settings;  ///< of its handler
};

struct PodGrade {
  Grade grade = Grade::kBestEffort;
  std::optional<QuietObstacle> refused;  ///< why the pod does not have the grade that it requests
};

/// Its annotation decides where that is allowed, else its namespace, else its handler's settings.
PodGrade grade_of(const GradeFacts& pod, const QuietRules& rules);

/// A pod of a handler with these settings can be quiet or realtime, whatever its namespace is.
bool may_be_quiet(const Settings& settings, const QuietRules& rules);

/// What the helper's answer means for a pod with these CPUs. Absent: it is quiet. Interrupts
/// and threads of the kernel that cannot be moved do not count: they are shown. Nor do units on
/// CPUs of a partition, `apart`, where the kernel runs none of them whatever their masks are.
std::optional<QuietObstacle> quiet_obstacle(const CpuSet& cpus, const QuietState& state,
                                            const CpuSet& apart = {});

}  // namespace ka::policy::plan
