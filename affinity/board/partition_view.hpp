// SPDX-License-Identifier: Apache-2.0
// Which sandboxes have a cpuset partition, by kata-affinity-helper's last response.
#pragma once

#include <map>
#include <string>

#include "policy/facts/id_set.hpp"

namespace ka::board {

struct PartitionView {
  policy::CpuSet cpus;  ///< of its vCPUs
  std::string problem;  ///< why there is none; empty: there is
  /// Why these are no real-time threads; empty: they are, or are not to be.
  std::string not_realtime;
  std::string low_power;  ///< why its CPUs are not at full power; empty: they are, or need not be
};

/// By sandbox that is to have one.
using PartitionViews = std::map<std::string, PartitionView, std::less<>>;

}  // namespace ka::board
