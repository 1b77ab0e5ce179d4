// SPDX-License-Identifier: Apache-2.0
// What makes a file another one than it was when it was last looked at.
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
