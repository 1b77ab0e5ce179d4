// SPDX-License-Identifier: Apache-2.0
// A finding of one of the witnesses: kubelet or the container runtime, the kernel, the guest, the
// daemon.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ka::cli::selftest {

struct Finding {
  enum class By {
    kKubelet,  ///< its cpu_manager_state
    kRuntime,  ///< the specs of its containers, where no kubelet runs
    kKernel,   ///< sched_getaffinity(2), /proc, KVM's debugfs, cgroups
    kGuest,    ///< /proc in the container, and KVM's debugfs
    kDaemon,   ///< kata-affinityd's API
  };
  enum class Level {
    kHolds,
    kNotSeen,   ///< it could not be looked at
    kDegraded,  ///< the pins hold, and the CPUs are not the container's alone
    kBroken,
  };

  By by = By::kKernel;
  Level level = Level::kHolds;
  std::string text;
};

using Findings = std::vector<Finding>;

/// "kubelet", "runtime", "kernel", "guest" or "daemon".
std::string_view witness_name(Finding::By by);
/// "ok", "not seen", "degraded" or "broken".
std::string_view level_name(Finding::Level level);

/// Whether nothing is broken.
bool all_hold(const Findings& findings);

}  // namespace ka::cli::selftest
