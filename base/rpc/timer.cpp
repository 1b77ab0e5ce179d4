// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/timer.hpp"

#include <utility>

namespace ka::rpc {

Timer::Timer(boost::asio::io_context& io, const base::Clock& clock) : clock_(clock), timer_(io) {}

Timer::~Timer() { end(); }

void Timer::in(base::Clock::Time::duration delay, std::function<void()> then) {
  at(clock_.now() + delay, std::move(then));
}

void Timer::at(base::Clock::Time due, std::function<void()> then) {
  end();
  due_ = due;
  then_ = std::move(then);
  clock_.attach(*this);
  wait();
}

void Timer::cancel() {
  ++*turn_;
  end();
  timer_.cancel();
}

/// The function that is no longer to be called.
std::function<void()> Timer::end() {
  if (then_) clock_.detach(*this);
  return std::exchange(then_, {});
}

void Timer::clock_advanced() { wait(); }

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
  const auto then = end();
  then();
}

}  // namespace ka::rpc
