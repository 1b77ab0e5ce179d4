// SPDX-License-Identifier: Apache-2.0
// What interrupted dedicated vCPUs, as a sentence.
#pragma once

#include <string>

namespace ka::messages {

struct Interrupted {
  long long slices = 0;          ///< how often something else was given the CPU
  long long nanoseconds = 0;     ///< that it ran
  long long interrupts = 0;      ///< of the host's devices
  long long passed_through = 0;  ///< interrupts of devices that VMs have: no interruptions
  double seconds = 0;            ///< over which that was counted

  bool any() const { return slices > 0 || interrupts > 0; }
  Interrupted& operator+=(const Interrupted& more);
};

/// "12 times, 3.4 ms, 5 device interrupts in 120 s, and 7 interrupts of passed-through devices";
/// "counted from now on" at the first reading.
std::string interruptions_text(const Interrupted& interrupted);

}  // namespace ka::messages
