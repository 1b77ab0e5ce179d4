// SPDX-License-Identifier: Apache-2.0
// The pauses between attempts to reach a peer that is away.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace ka::base {

/// Exponential back-off: the first pause, then twice as long each time, up to the longest.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  Backoff(Duration first, Duration longest) : first_(first), longest_(longest), next_(first) {}

  /// The pause before the next attempt, without an attempt.
  Duration pause() const { return next_; }
  /// The pause before the next attempt.
  Duration next() { return std::exchange(next_, std::min(2 * next_, longest_)); }
  /// After a success: the next failure is followed by the first pause again.
  void reset() { next_ = first_; }

 private:
  Duration first_;
  Duration longest_;
  Duration next_;
};

}  // namespace ka::base
