// SPDX-License-Identifier: Apache-2.0
// A cgroup's block I/O, version 2 (Documentation/admin-guide/cgroup-v2.rst): its share of a busy
// disk among its siblings (io.weight), and its limits (io.max).
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "policy/facts/io_limits.hpp"

namespace ka::host {

/// What a cgroup has that nobody gave a weight.
inline constexpr int kDefaultIoWeight = 100;

/// The default weight of a cgroup, for devices that have none of their own. kUnavailable: the io
/// controller is not enabled for it, or the kernel has no io.weight; the message says which. kGone:
/// there is no such cgroup.
base::Result<int> read_io_weight(const std::filesystem::path& directory);

/// The limits of a cgroup. Errors: the same, of io.max.
base::Result<policy::IoLimits> read_io_max(const std::filesystem::path& directory);

/// Whether the io controller could be enabled for a cgroup: the topmost one of its tree has it.
bool has_io_controller(const std::filesystem::path& directory);

}  // namespace ka::host
