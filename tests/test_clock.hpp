// SPDX-License-Identifier: Apache-2.0
// A clock that stands still until a test puts it forward.
#pragma once

#include <set>

#include "base/clock.hpp"

namespace ka::tests {

class TestClock final : public base::Clock {
 public:
  Time now() const override { return now_; }
  /// One hour into 1970 at first.
  std::chrono::system_clock::time_point wall() const override {
    return std::chrono::system_clock::time_point(now_.time_since_epoch());
  }

  /// An hour, too, at first.
  std::chrono::nanoseconds since_boot() const override { return now_.time_since_epoch(); }
  /// Returns at once, and the time has passed.
  void sleep(Time::duration time) const override { pass(time); }

  /// Timers that are due then run with the loop's next turn.
  void advance(Time::duration by) { pass(by); }

  void attach(Observer& observer) const override { observers_.insert(&observer); }
  void detach(Observer& observer) const override { observers_.erase(&observer); }

 private:
  void pass(Time::duration time) const {
    now_ += time;
    for (Observer* observer : observers_) observer->clock_advanced();
  }

  // Not the epoch: a time that was never set lies before it.
  mutable Time now_{std::chrono::hours(1)};
  mutable std::set<Observer*> observers_;
};

}  // namespace ka::tests
