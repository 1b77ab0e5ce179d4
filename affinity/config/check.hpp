// SPDX-License-Identifier: Apache-2.0
// Which values the keys of [affinity] may have.
#pragma once

#include "affinity/config/entries.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::config {

/// Checks every entry: its key is known and allowed in its table, its value has the right type and
/// is supported by this build. The error is the first in the order of the paths, with its location
/// and the allowed values.
base::Result<void> check(const Entries& entries);

/// Checks that each cpuset among the values, all of them good ones, lies within `machine`.
base::Result<void> check_cpus(const Entries& entries, const policy::CpuSet& machine);

}  // namespace ka::config
