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
  virtual Time now() const;
  /// For display.
  virtual std::chrono::system_clock::time_point wall() const;
  /// Since the machine was started, with the time in which it was suspended: what start times in
  /// /proc/<pid>/stat count (proc_pid_stat(5)). In any time namespace that of the initial one.
  virtual std::chrono::nanoseconds since_boot() const;
  /// Blocks the calling thread for that long.
  virtual void sleep(Time::duration time) const;

  /// Real time is never put forward: only a test's clock has listeners.
  virtual void attach(Observer&) const {}
  virtual void detach(Observer&) const {}
};

}  // namespace ka::base
