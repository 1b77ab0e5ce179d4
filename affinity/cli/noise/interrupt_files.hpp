// SPDX-License-Identifier: Apache-2.0
// Whether an interrupt of a device can be sent to other CPUs, and where it goes now.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "policy/facts/id_set.hpp"

namespace ka::cli::noise {

struct InterruptFacts {
  std::optional<bool> is_movable;  ///< absent: the kernel does not tell
  policy::CpuSet effective;        ///< where it goes; empty: not known
};

class InterruptFiles {
 public:
  InterruptFiles(std::filesystem::path proc, std::filesystem::path debugfs)
      : proc_(std::move(proc)), debugfs_(std::move(debugfs)) {}

  /// Absent: there is none of this number (any more).
  std::optional<InterruptFacts> read(int number) const;

 private:
  std::optional<bool> is_movable(int number, std::filesystem::perms permissions) const;

  std::filesystem::path proc_, debugfs_;
};

}  // namespace ka::cli::noise
