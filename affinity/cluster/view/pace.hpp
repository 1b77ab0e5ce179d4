// SPDX-License-Identifier: Apache-2.0
// How often one node writes to the API server, so that a fleet of them does not harm it.
#pragma once

#include "base/clock.hpp"

namespace ka::cluster {

/// One write each `interval` on average, and up to kBurst at once after a quiet time. At the start
/// there is none to spare: N nodes that start together write N / interval times a second.
class Pace {
 public:
  using Duration = base::Clock::Time::duration;

  static constexpr int kBurst = 3;

  /// The first write is `phase` away, which spreads nodes that start together.
  Pace(const base::Clock& clock, Duration interval, Duration phase);

  /// How long the next write has to wait; zero: it may come now.
  Duration pause() const;
  /// A write is made.
  void spend();
  /// As at the start: after the API server was away, all nodes come back at once.
  void restart(Duration phase);

 private:
  const base::Clock& clock_;
  Duration interval_;
  base::Clock::Time due_{};  ///< when a write would be due if all before it had kept the interval
};

}  // namespace ka::cluster
