// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/pace.hpp"

#include <algorithm>

namespace ka::cluster {

Pace::Pace(const base::Clock& clock, Duration interval, Duration phase)
    : clock_(clock), interval_(interval) {
  restart(phase);
}

Pace::Duration Pace::pause() const {
  const auto earliest = due_ - (kBurst - 1) * interval_;
  return std::max(earliest - clock_.now(), Duration::zero());
}

void Pace::spend() { due_ = std::max(due_, clock_.now()) + interval_; }

void Pace::restart(Duration phase) { due_ = clock_.now() + phase + (kBurst - 1) * interval_; }

}  // namespace ka::cluster
