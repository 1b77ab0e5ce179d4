// SPDX-License-Identifier: Apache-2.0
// The clocks, as an argument: tests bring their own.
#pragma once

#include <chrono>

namespace ka::base {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// For durations.
  virtual std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::now();
  }
  /// For people.
  virtual std::chrono::system_clock::time_point wall() const {
    return std::chrono::system_clock::now();
  }
};

}  // namespace ka::base
