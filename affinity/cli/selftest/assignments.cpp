// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/assignments.hpp"

namespace ka::cli::selftest {

policy::CpuSet Assignments::of_pod(const std::string& uid) const {
  policy::CpuSet cpus;
  for (const auto& claim : claims) {
    if (claim.pod_uid == uid) cpus |= claim.cpus;
  }
  return cpus;
}

policy::CpuSet Assignments::all() const {
  policy::CpuSet cpus;
  for (const auto& claim : claims) cpus |= claim.cpus;
  return cpus;
}

}  // namespace ka::cli::selftest
