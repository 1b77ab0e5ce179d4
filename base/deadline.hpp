// SPDX-License-Identifier: Apache-2.0
// The time by which a waiting client must have its answer, if one waits.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.hpp"

namespace ka::base {

class Deadline {
 public:
  /// No client waits: it never passes.
  static Deadline none() { return Deadline(std::nullopt); }
  static Deadline in(const Clock& clock, std::chrono::nanoseconds budget) {
    return Deadline(clock.now() + budget);
  }

  /// The remaining budget: 0 or below once the deadline has passed, the largest duration
  /// where there is none.
  std::chrono::nanoseconds remaining(const Clock& clock) const {
    return at_ ? *at_ - clock.now() : std::chrono::nanoseconds::max();
  }

  bool operator==(const Deadline&) const = default;

 private:
  using Time = std::chrono::steady_clock::time_point;

  explicit Deadline(std::optional<Time> at) : at_(at) {}

  std::optional<Time> at_;
};

}  // namespace ka::base
