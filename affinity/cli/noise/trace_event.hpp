// SPDX-License-Identifier: Apache-2.0
// What the kernel's tracepoints say of one CPU, in its order.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <variant>

namespace ka::cli::noise {

/// Of CLOCK_MONOTONIC.
using Nanoseconds = std::chrono::nanoseconds;

enum class CauseKind {
  kTask,       ///< id: its tid
  kInterrupt,  ///< id: its number in /proc/interrupts
  kSoftirq,    ///< id: its vector
  kVector,     ///< of the CPU itself: its timer, calls of other CPUs; id: the row of kVectors
};

/// What takes time on a CPU.
struct Cause {
  CauseKind kind = CauseKind::kTask;
  int id = 0;

  auto operator<=>(const Cause&) const = default;
};

/// The scheduler's switch from one task to another; tid 0 is idle.
struct Switch {
  int from = 0, to = 0;
  std::string from_name, to_name;
};

/// An interrupt or a softirq begins.
struct Begin {
  Cause cause;
  std::string name;
};

/// It ends.
struct End {
  Cause cause;
};

/// The kernel had no room for so many events.
struct Lost {
  std::uint64_t events = 0;
};

struct TraceEvent {
  int cpu = 0;
  Nanoseconds at{};
  int running = 0;  ///< the task that ran then; not for Lost
  std::variant<Switch, Begin, End, Lost> body;
};

}  // namespace ka::cli::noise
