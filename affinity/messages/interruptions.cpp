// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/interruptions.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "affinity/messages/terms.hpp"

namespace ka::messages {

Interrupted& Interrupted::operator+=(const Interrupted& more) {
  slices += more.slices;
  nanoseconds += more.nanoseconds;
  interrupts += more.interrupts;
  passed_through += more.passed_through;
  seconds = std::max(seconds, more.seconds);
  return *this;
}

std::string interruptions_text(const Interrupted& interrupted) {
  constexpr double kMillisecond = 1e6;
  if (interrupted.seconds <= 0) return "counted from now on";
  const double milliseconds = static_cast<double>(interrupted.nanoseconds) / kMillisecond;
  const std::string interrupts =
      interrupted.interrupts == 0 ? "" : ", " + counted(interrupted.interrupts, "device interrupt");
  const std::string passed_through = interrupted.passed_through == 0
                                         ? ""
                                         : ", and " +
                                               counted(interrupted.passed_through, "interrupt") +
                                               " of passed-through devices";
  return fmt::format("{}, {:.1f} ms{} in {:.0f} s{}", counted(interrupted.slices, "time"),
                     milliseconds, interrupts, interrupted.seconds, passed_through);
}

}  // namespace ka::messages
