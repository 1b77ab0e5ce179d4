// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/finding.hpp"

#include <algorithm>

namespace ka::cli::selftest {

std::string_view witness_name(Finding::By by) {
  switch (by) {
    case Finding::By::kKubelet:
      return "kubelet";
    case Finding::By::kRuntime:
      return "runtime";
    case Finding::By::kKernel:
      return "kernel";
    case Finding::By::kGuest:
      return "guest";
    case Finding::By::kDaemon:
      break;
  }
  return "daemon";
}

std::string_view level_name(Finding::Level level) {
  switch (level) {
    case Finding::Level::kHolds:
      return "ok";
    case Finding::Level::kNotSeen:
      return "not seen";
    case Finding::Level::kDegraded:
      return "degraded";
    case Finding::Level::kBroken:
      break;
  }
  return "broken";
}

bool all_hold(const Findings& findings) {
  return std::ranges::none_of(
      findings, [](const Finding& one) { return one.level == Finding::Level::kBroken; });
}

}  // namespace ka::cli::selftest
