// SPDX-License-Identifier: Apache-2.0
// How long each part of the daemon's start took: until it is up, nothing follows kubelet.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace ka::daemon {

class StartParts {
 public:
  /// A part is done that began when the one before it ended.
  void done(std::string_view part) {
    const auto now = Clock::now();
    text_ += std::string(part) + ' ' + milliseconds(now - last_) + ", ";
    last_ = now;
  }

  /// "topology 41.2 ms, configuration 0.8 ms, 42.0 ms total"
  std::string text() const { return text_ + milliseconds(last_ - begin_) + " total"; }

 private:
  using Clock = std::chrono::steady_clock;

  static std::string milliseconds(Clock::duration elapsed) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms",
                  std::chrono::duration<double, std::milli>(elapsed).count());
    return text;
  }

  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
  std::string text_;
};

}  // namespace ka::daemon
