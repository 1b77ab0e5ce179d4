// SPDX-License-Identifier: Apache-2.0
// How fast a QMP server is read, so that one that sends events without end costs next to nothing.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "vmm/qmp/message.hpp"

namespace ka::qmp {

/// Bytes a second that are read for long. The answers about a VM of 64 vCPUs have 20 KiB.
inline constexpr std::size_t kReadRate = std::size_t{256} << 10;
/// What may be read at once: a few answers of the largest kind.
inline constexpr std::size_t kReadBurst = 4 * kMaxMessage;

/// Credit that is spent by reading and comes back with time. Times are of one steady clock.
class Intake {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Intake(Clock::time_point now) : at_(now) {}

  /// `size` bytes were read. How long to wait before more is read; mostly zero.
  Clock::duration spend(std::size_t size, Clock::time_point now) {
    const std::chrono::duration<double> passed = now - at_;
    at_ = now;
    credit_ = std::min(kBurst, credit_ + passed.count() * kRate) - static_cast<double>(size);
    if (credit_ >= 0) return {};
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(-credit_ / kRate));
  }

 private:
  static constexpr double kRate = kReadRate;
  static constexpr double kBurst = kReadBurst;

  Clock::time_point at_;
  double credit_ = kBurst;
};

}  // namespace ka::qmp
