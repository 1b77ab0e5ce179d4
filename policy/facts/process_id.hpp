// SPDX-License-Identifier: Apache-2.0
// The identity of a process.
#pragma once

#include <compare>
#include <cstdint>

namespace ka::policy {

/// The identity of a process, not shared by a later one with the same pid. The third part of an
/// identity is the boot: a daemon lives in one, and each state file names its own.
struct ProcessId {
  int pid = 0;                   ///< of the thread group
  std::uint64_t start_time = 0;  ///< clock ticks since boot, field 22 of /proc/<pid>/stat

  auto operator<=>(const ProcessId&) const = default;
};

}  // namespace ka::policy
