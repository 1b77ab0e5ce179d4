// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/ticker.hpp"

#include <utility>

namespace ka::daemon {

Ticker::Ticker(boost::asio::io_context& io, const base::Clock& clock, Duration interval,
               std::function<void()> tick)
    : clock_(clock), timer_(io, clock), tick_(std::move(tick)) {
  set_interval(interval);
}

void Ticker::set_interval(Duration interval) {
  interval_ = interval;
  due_ = clock_.now() + interval_;
  wait();
}

void Ticker::wait() {
  timer_.at(due_, [this] {
    tick_();
    const auto now = clock_.now();
    due_ += interval_;
    // A machine that slept, or a tick that took too long, is not made up for.
    if (due_ <= now) due_ = now + interval_;
    wait();
  });
}

}  // namespace ka::daemon
