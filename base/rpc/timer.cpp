// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/timer.hpp"

#include <utility>

namespace ka::rpc {

void Timer::in(std::chrono::milliseconds delay, std::function<void()> then) {
  cancel();
  timer_.expires_after(delay);
  timer_.async_wait([then = std::move(then), turn = *turn_,
                     now = std::weak_ptr(turn_)](const boost::system::error_code& error) {
    const auto current = now.lock();
    if (!error && current && *current == turn) then();
  });
}

void Timer::cancel() {
  ++*turn_;
  timer_.cancel();
}

}  // namespace ka::rpc
