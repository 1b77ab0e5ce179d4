// SPDX-License-Identifier: Apache-2.0
// Limits how often the same message is logged.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ka::log {

class Limiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// For each key `burst` lines, and one more every `refill`.
  Limiter(int burst, std::chrono::seconds refill);

  /// Empty: suppress the line. Otherwise the number of this key suppressed since the last one.
  std::optional<std::uint64_t> admit(const std::string& key, Time now);

 private:
  struct Bucket {
    double lines;  ///< that may still be written
    Time filled;
    std::uint64_t left_out = 0;
  };

  void drop_idle(Time now);

  double burst_;
  std::chrono::duration<double> refill_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace ka::log
