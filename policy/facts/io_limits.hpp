// SPDX-License-Identifier: Apache-2.0
// Limits of a cgroup's block I/O, as io.max has them (Documentation/admin-guide/cgroup-v2.rst;
// tg_set_limit() and tg_prfill_limit() in block/blk-throttle.c).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ka::policy {

/// By disk, "8:0": all four limits in the kernel's order, "rbps=max wbps=1000 riops=max wiops=max":
/// bytes and operations a second.
using IoLimits = std::map<std::string, std::string>;

/// What a disk has for which the kernel's file has no line.
inline constexpr std::string_view kNoIoLimits = "rbps=max wbps=max riops=max wiops=max";

/// "8:0 wbps=1000 riops=max", in any order, of several disks with `separator` between them. What is
/// not named has no limit. Absent: it is not that, or names a disk or a limit twice.
std::optional<IoLimits> parse_io_limits(std::string_view text, char separator);

}  // namespace ka::policy
