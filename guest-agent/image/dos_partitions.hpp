// SPDX-License-Identifier: Apache-2.0
// The DOS partition table in the first sector of a disk.
#pragma once

#include <cstddef>

namespace ka::image {

inline constexpr std::size_t kSector = 512;
inline constexpr std::size_t kPartitionTable = 446;  ///< its offset in the sector
inline constexpr std::size_t kPartitionEntry = 16;   ///< the size of an entry

}  // namespace ka::image
