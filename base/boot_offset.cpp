// SPDX-License-Identifier: Apache-2.0
#include "base/boot_offset.hpp"

#include <unistd.h>

#include <sstream>
#include <string>

#include "base/files.hpp"

namespace ka::base {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

nanoseconds clock_tick() { return nanoseconds(seconds(1)) / ::sysconf(_SC_CLK_TCK); }

Result<nanoseconds> read_boot_offset() {
  const auto text = read_file("/proc/self/timens_offsets");
  if (is_gone(text)) return nanoseconds(0);
  if (!text) return unexpected(text.error());
  return parse_boot_offset(*text);
}

}  // namespace

Result<nanoseconds> parse_boot_offset(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string clock;
  for (std::int64_t whole = 0, rest = 0; lines >> clock >> whole >> rest;) {
    if (clock != "boottime") continue;
    const nanoseconds offset = seconds(whole) + nanoseconds(rest);
    if (offset >= nanoseconds(0) && offset % clock_tick() == nanoseconds(0)) return offset;
    return fail(ErrorCode::kUnavailable, "the time namespace shifts the time since boot by " +
                                             std::to_string(whole) + " s and " +
                                             std::to_string(rest) +
                                             " ns: start times of processes cannot be determined");
  }
  return fail(ErrorCode::kUnavailable, "malformed /proc/self/timens_offsets");
}

const Result<nanoseconds>& boot_offset() {
  static const Result<nanoseconds> offset = read_boot_offset();
  return offset;
}

std::uint64_t boot_offset_ticks() {
  static const auto ticks =
      static_cast<std::uint64_t>(boot_offset().value_or(nanoseconds(0)) / clock_tick());
  return ticks;
}

}  // namespace ka::base
