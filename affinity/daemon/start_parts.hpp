// SPDX-License-Identifier: Apache-2.0
// How long each part of the daemon's start took: until it is up, nothing follows kubelet.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace ka::daemon {

class StartParts {
 public:
  /// `clock` must outlive it.
  explicit StartParts(const base::Clock& clock)
      : clock_(clock), begin_(clock.now()), last_(begin_) {}

  /// A part is done that began when the one before it ended.
  void done(std::string_view part) {
    const auto now = clock_.now();
    text_ += std::string(part) + ' ' + milliseconds(now - last_) + ", ";
    last_ = now;
  }

  /// "topology 41.2 ms, configuration 0.8 ms, 42.0 ms total"
  std::string text() const { return text_ + milliseconds(last_ - begin_) + " total"; }

 private:
  static std::string milliseconds(base::Clock::Time::duration elapsed) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms",
                  std::chrono::duration<double, std::milli>(elapsed).count());
    return text;
  }

  const base::Clock& clock_;
  base::Clock::Time begin_;
  base::Clock::Time last_;
  std::string text_;
};

}  // namespace ka::daemon
