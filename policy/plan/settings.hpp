// SPDX-License-Identifier: Apache-2.0
// The settings that decide a plan ([affinity] in configuration.toml): a plain value, complete and
// valid by the time it gets here.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "policy/facts/cpu_tuning.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::policy::plan {

/// How far the rest of the node keeps away from a sandbox's exclusive CPUs.
enum class Grade {
  kBestEffort,  ///< we place threads of sandboxes only
  kQuiet,       ///< the host leaves them, too, as far as its threads and interrupts can be moved
  kRealtime,    ///< as quiet; dedicated vCPUs in a partition are real-time threads
};

/// The host leaves them.
constexpr bool is_quiet(Grade grade) { return grade != Grade::kBestEffort; }
/// As in configuration and API.
constexpr std::string_view grade_name(Grade grade) {
  if (grade == Grade::kRealtime) return "realtime";
  return grade == Grade::kQuiet ? "quiet" : "best-effort";
}

enum class VcpuPinning {
  kDedicated,  ///< vCPUs of exclusive containers get one CPU each, the others float
  kBalanced,   ///< as dedicated; floating vCPUs are spread over the housekeeping CPUs, L3 by L3
  kMask,       ///< every vCPU floats on the sandbox mask
  kNone,       ///< vCPU threads are not placed by us at all
};

/// Where everything but dedicated vCPUs runs.
struct Housekeeping {
  enum class Kind {
    kSandbox,     ///< sandbox mask minus the CPUs of dedicated vCPUs
    kSharedPool,  ///< the node's shared pool, for each thread as far as its cgroup allows it
    kCpus,        ///< `cpus`
    kIsolate,     ///< one core of the sandbox's own CPUs, taken from the dedicated vCPUs
  };
  Kind kind = Kind::kSharedPool;
  CpuSet cpus;  ///< for kCpus

  bool operator==(const Housekeeping&) const = default;
};

/// The agent that applies container cpusets in the guest.
enum class GuestAgent {
  kAuto,       ///< ours, where it is
  kOurs,       ///< ours, which must be there
  kKataAgent,  ///< Kata's own
  kNone,
};

/// Settings of placement inside a guest.
struct GuestSettings {
  GuestAgent agent = GuestAgent::kAuto;
  bool move_interrupts = true;             ///< off dedicated vCPUs
  bool lift_quota = false;                 ///< no CFS quota for exclusive containers
  bool environment = false;                ///< containers get a list of their CPUs
  bool environment_by_annotation = false;  ///< a pod's annotation overrides it

  bool operator==(const GuestSettings&) const = default;
};

struct Settings {
  Grade grade = Grade::kBestEffort;
  std::set<Grade> allow_grades;       ///< that pods may request by annotation
  std::set<TuningKind> allow_tuning;  ///< the same, of tuning of their CPUs
  VcpuPinning vcpu_pinning = VcpuPinning::kDedicated;
  Housekeeping housekeeping;
  /// Of the roles that have one of their own (RoleInfo::has_setting), in place of `housekeeping`.
  std::map<Role, Housekeeping> housekeeping_by_role;

  const Housekeeping& housekeeping_of(Role role) const {
    const auto own = housekeeping_by_role.find(role);
    return own == housekeeping_by_role.end() ? housekeeping : own->second;
  }

  GuestSettings guest;
  bool move_memory = false;    ///< memory = "migrate": it follows the CPUs
  bool manage_cgroup = false;  ///< cgroup = "manage": its cpuset follows the plan

  bool operator==(const Settings&) const = default;
};

}  // namespace ka::policy::plan
