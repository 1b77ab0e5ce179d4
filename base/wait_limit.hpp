// SPDX-License-Identifier: Apache-2.0
// How long a program waits for another one, which may hang.
#pragma once

#include <chrono>

#include "base/clock.hpp"
#include "base/deadline.hpp"

namespace ka::base {

/// Until a time, and no longer than until a descriptor can be read from (signalfd(2)).
struct WaitLimit {
  Deadline deadline = Deadline::none();
  int interrupt = -1;  ///< not owned; -1: nothing interrupts

  static WaitLimit of(std::chrono::nanoseconds limit) { return {Deadline::in(Clock(), limit), -1}; }

  /// The same, and no longer than that from now.
  WaitLimit at_most(std::chrono::nanoseconds limit) const;
  /// In whole milliseconds, at least 0. The largest number of poll(2) where there is no end.
  std::chrono::milliseconds remaining() const;
};

enum class Waited { kReady, kLate, kInterrupted };

/// Waits for `events` of poll(2), or for the peer's end.
Waited wait_for(int fd, short events, const WaitLimit& wait_limit);

/// "no response in time", or "interrupted by a signal".
const char* reason_of(Waited waited);

}  // namespace ka::base
