// SPDX-License-Identifier: Apache-2.0
// What hwloc left out: of a file that it cannot read it says nothing, and takes a machine without
// one for flat.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::host {

/// Parts of a machine that hwloc does not have.
struct LeftOut {
  policy::CpuSet cores;   ///< online CPUs in no core, or in no package
  policy::CpuSet caches;  ///< online CPUs in no L3 cache
  policy::NodeSet nodes;  ///< the nodes that it has; others may be left out
};

/// The error: the kernel has such a part below `system` (sys/devices/system), so that its files
/// could not be read.
base::Result<void> check_left_out(const std::filesystem::path& system, const LeftOut& left_out);

}  // namespace ka::host
