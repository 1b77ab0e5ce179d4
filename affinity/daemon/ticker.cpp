// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/ticker.hpp"

#include <utility>

namespace ka::daemon {

Ticker::Ticker(boost::asio::io_context& io, Duration interval, std::function<void()> tick)
    : timer_(io), tick_(std::move(tick)) {
  set_interval(interval);
}

void Ticker::set_interval(Duration interval) {
  interval_ = interval;
  timer_.expires_after(interval_);
  wait();
}

void Ticker::wait() {
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    tick_();
    const auto now = std::chrono::steady_clock::now();
    // A machine that slept, or a tick that took too long, is not made up for.
    const auto next = timer_.expiry() + interval_;
    timer_.expires_at(next > now ? next : now + interval_);
    wait();
  });
}

}  // namespace ka::daemon
