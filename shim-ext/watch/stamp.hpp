// SPDX-License-Identifier: Apache-2.0
// Identifies the content of a file, to see whether it changed since it was last read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ka::watch {

/// All zero: there is no file.
struct Stamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t seconds = 0, nanoseconds = 0, size = 0;

  bool operator==(const Stamp&) const = default;
};

/// Costs one stat. Absent: it cannot be seen whether there is a file.
std::optional<Stamp> stamp_of(const std::filesystem::path& file);

}  // namespace ka::watch
