// SPDX-License-Identifier: Apache-2.0
// A coroutine's wait by an injected clock, which can be ended before its time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.hpp"
#include "base/rpc/timer.hpp"

namespace ka::rpc {

/// One coroutine waits at a time.
class Wait {
 public:
  /// `io` must outlive it, `clock` every wait.
  Wait(boost::asio::io_context& io, const base::Clock& clock);

  /// When wait() ends by itself; before the first call it ends at once.
  void set(base::Clock::Time::duration delay) { due_ = clock_.now() + delay; }
  /// Until then, or until cancel(). The object must outlive it.
  boost::asio::awaitable<void> wait();
  /// Ends a wait that is under way. Nothing where none is.
  void cancel();

 private:
  const base::Clock& clock_;
  base::Clock::Time due_{};
  Timer timer_;
  boost::asio::steady_timer ended_;  ///< never runs out: cancelled, it resumes the coroutine
};

}  // namespace ka::rpc
