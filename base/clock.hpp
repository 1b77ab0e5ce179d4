// SPDX-License-Identifier: Apache-2.0
// Clocks as a parameter: tests inject their own.
#pragma once

#include <chrono>

namespace ka::base {

class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A timer that runs by this clock.
  class Observer {
   public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    /// The clock was put forward.
    virtual void clock_advanced() = 0;

   protected:
    ~Observer() = default;
  };

  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// For durations.
  virtual Time now() const { return std::chrono::steady_clock::now(); }
  /// For display.
  virtual std::chrono::system_clock::time_point wall() const {
    return std::chrono::system_clock::now();
  }

  /// Real time is never put forward: only a test's clock has listeners.
  virtual void attach(Observer&) const {}
  virtual void detach(Observer&) const {}
};

}  // namespace ka::base
