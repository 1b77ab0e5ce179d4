// SPDX-License-Identifier: Apache-2.0
// What a run of the line did: returned to the caller, and counted by the board.
#pragma once

#include <chrono>

namespace ka::board {

struct Outcome {
  /// Of writes and reads, by kind.
  struct Errors {
    int permission = 0;  ///< the kernel refuses for good
    int transient = 0;   ///< the kernel refuses for now
    int other = 0;       ///< an errno that is not expected
    int unreadable = 0;  ///< sandboxes that could not be read completely

    Errors& operator+=(const Errors& more);
  };

  int runs = 0;        ///< complete runs of the line
  int planned = 0;     ///< sandboxes planned
  int writes = 0;      ///< affinity system calls made
  int failed = 0;      ///< threads that could not be placed
  int gone = 0;        ///< threads that exited before they were placed
  int late = 0;        ///< sandboxes for which narrow() had no time left
  int interrupts = 0;  ///< interrupts of passed-through devices that were sent elsewhere
  int cgroups = 0;     ///< writes to cgroup cpusets
  int classes = 0;     ///< values that resource classes come to, written
  Errors errors;
  std::chrono::nanoseconds duration{};

  Outcome& operator+=(const Outcome& other);
};

}  // namespace ka::board
