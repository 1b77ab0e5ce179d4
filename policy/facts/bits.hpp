// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ka::policy {

/// How many bits are set. std::popcount calls a library where the processor need not have an
/// instruction for it.
inline int bit_count(std::uint64_t word) {
  constexpr std::uint64_t kPairs = 0x5555555555555555, kFours = 0x3333333333333333,
                          kEights = 0x0f0f0f0f0f0f0f0f, kBytes = 0x0101010101010101;
  word -= word >> 1 & kPairs;
  word = (word & kFours) + (word >> 2 & kFours);
  return static_cast<int>(((word + (word >> 4)) & kEights) * kBytes >> 56);
}

}  // namespace ka::policy
