// SPDX-License-Identifier: Apache-2.0
// grade = "quiet": which CPUs the host is to be kept off, and what a sandbox has of it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/quiet.hpp"
#include "policy/facts/topology.hpp"

namespace ka::policy::plan {

/// One sandbox whose grade is quiet.
struct QuietClaim {
  std::string sandbox;
  CpuSet cpus;  ///< those of its dedicated vCPUs

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

/// Why a sandbox is best-effort although its grade is quiet.
enum class NotQuiet {
  kReleased,      ///< it is released: nothing is done for it
  kObserved,      ///< mode = "observe": nothing is written
  kNotDedicated,  ///< no vCPU of it has a CPU of its own (yet)
  kOwnUnit,       ///< its VMM runs in the host's unit `subject`, which cannot leave its CPUs
  kFloor,         ///< the host would be left without its floor
  kRefused,       ///< the helper refuses its CPUs: why is in `subject`
  kSilent,        ///< the helper does not answer: why is in `subject`
  kProblem,       ///< the helper can write nothing: why is in `subject`
  kPending,       ///< the helper has yet to answer
  kUnseen,        ///< the helper cannot see what may run there: which, and why, in `subject`
  kUnitLeft,      ///< the host's units may still run there: which, and why, in `subject`
};

struct QuietObstacle {
  NotQuiet reason = NotQuiet::kPending;
  std::string subject = {};

  bool operator==(const QuietObstacle&) const = default;
};

/// What the helper's answer means for a sandbox with these CPUs. Absent: it is quiet. Interrupts
/// and threads of the kernel that cannot be moved do not count: they are shown.
std::optional<QuietObstacle> quiet_obstacle(const CpuSet& cpus, const QuietState& state);

}  // namespace ka::policy::plan
