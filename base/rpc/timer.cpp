// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/timer.hpp"

#include <utility>

namespace ka::rpc {

Timer::Timer(boost::asio::io_context& io, const base::Clock& clock) : clock_(clock), timer_(io) {
  clock_.attach(*this);
}

Timer::~Timer() { clock_.detach(*this); }

void Timer::in(base::Clock::Time::duration delay, std::function<void()> then) {
  at(clock_.now() + delay, std::move(then));
}

void Timer::at(base::Clock::Time due, std::function<void()> then) {
  due_ = due;
  then_ = std::move(then);
  wait();
}

void Timer::cancel() {
  ++*turn_;
  then_ = {};
  timer_.cancel();
}

void Timer::clock_advanced() {
  if (then_) wait();
}

void Timer::wait() {
  ++*turn_;
  timer_.expires_after(due_ - clock_.now());
  timer_.async_wait(
      [this, turn = *turn_, now = std::weak_ptr(turn_)](const boost::system::error_code& error) {
        const auto current = now.lock();
        if (!error && current && *current == turn) expire();
      });
}

/// A clock that is put forward by hand may be behind Asio's.
void Timer::expire() {
  if (clock_.now() < due_) return wait();
  const auto then = std::exchange(then_, {});
  then();
}

}  // namespace ka::rpc
