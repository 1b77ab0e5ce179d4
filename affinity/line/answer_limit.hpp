// SPDX-License-Identifier: Apache-2.0
// How fast writes of other programs are reverted: at once, until they keep coming; then
// after a wait that doubles each time, so that two programs that want different things do not keep
// a sandbox from its work.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/backoff.hpp"

namespace ka::line {

class AnswerLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// That many answers without kCalm between two of them are given at once.
  static constexpr int kAtOnce = 20;
  static constexpr std::chrono::seconds kCalm{30};
  static constexpr std::chrono::seconds kShortest{1}, kLongest{60};

  bool may_answer(Time now) const { return now >= next_; }
  /// The same of what cannot wait: once in kShortest also during a longer wait.
  bool may_answer_urgently(Time now) const { return may_answer(now) || now - last_ >= kShortest; }
  /// When it may, next.
  Time next() const { return next_; }

  void answered(Time now) {
    if (now - last_ > std::max<std::chrono::nanoseconds>(kCalm, 2 * wait_)) {
      answers_ = 0;
      wait_ = {};
      backoff_.reset();
    }
    last_ = now;
    if (++answers_ < kAtOnce) return;
    wait_ = backoff_.next();
    next_ = now + wait_;
  }

 private:
  int answers_ = 0;
  base::Backoff backoff_{kShortest, kLongest};
  base::Backoff::Duration wait_{};
  Time last_{}, next_{};
};

}  // namespace ka::line
