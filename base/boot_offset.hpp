// SPDX-License-Identifier: Apache-2.0
// Time since boot as the initial time namespace has it. In another one (time_namespaces(7)) clocks
// and the start times in /proc are shifted, for the process that reads them: two daemons would not
// know the same process again.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace ka::base {

/// What a text of /proc/<pid>/timens_offsets says of CLOCK_BOOTTIME. kUnavailable also for what
/// cannot be subtracted from start times, which are whole clock ticks and not negative.
Result<std::chrono::nanoseconds> parse_boot_offset(std::string_view text);

/// Of this process, read once; zero without time namespaces. An error: start times are not known.
const Result<std::chrono::nanoseconds>& boot_offset();

/// What of a start time in /proc, as this process reads it, is the offset; zero where it is not
/// known.
std::uint64_t boot_offset_ticks();

}  // namespace ka::base
