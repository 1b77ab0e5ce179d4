// SPDX-License-Identifier: Apache-2.0
// The helper's own word on which CPUs the host may be kept off, whoever asks.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/topology.hpp"

namespace ka::helper {

struct Limits {
  policy::CpuSet floor;                 ///< is never taken; empty: one core, whichever it is
  std::filesystem::path kubelet_state;  ///< cpu_manager_state; empty: there is none
};

/// What may be taken of `requested`: where kubelet's static policy is in force, only what it has
/// given to containers. kInvalid: a CPU is not there, or the floor would be taken. Another error:
/// kubelet's file cannot be read.
base::Result<policy::CpuSet> admit(const policy::Topology& machine, const Limits& limits,
                                   const policy::CpuSet& requested);

}  // namespace ka::helper
