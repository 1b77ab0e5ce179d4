// SPDX-License-Identifier: Apache-2.0
// Who owns which CPUs, as kubelet or the container runtime has it.
#pragma once

#include <string>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/ledger/event.hpp"

namespace ka::cli::selftest {

struct Assignments {
  policy::CpuSet pool;  ///< CPUs without an owner
  std::vector<policy::ledger::Claim> claims;

  policy::CpuSet of_pod(const std::string& uid) const;
  policy::CpuSet all() const;
};

}  // namespace ka::cli::selftest
