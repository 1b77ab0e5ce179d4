// SPDX-License-Identifier: Apache-2.0
// System calls that a signal interrupts.
#pragma once

#include <cerrno>

namespace ka::base {

/// How often a call is repeated: one that is always interrupted must not hold up its thread.
inline constexpr int kMostInterruptions = 16;

/// Makes a system call, again while it fails with EINTR. Its result; on failure errno is set.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  for (int i = 0; i < kMostInterruptions && result < 0 && errno == EINTR; ++i) result = call();
  return result;
}

}  // namespace ka::base
