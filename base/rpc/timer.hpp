// SPDX-License-Identifier: Apache-2.0
// A timer by an injected clock whose cancellation is final.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.hpp"

namespace ka::rpc {

/// A timer of Asio calls back without an error, too, what ran out before it was cancelled, set
/// anew or destroyed and has not been called yet: all that came due while the program stood still.
/// This one does not.
class Timer final : private base::Clock::Observer {
 public:
  /// `io` must outlive it, `clock` every wait.
  Timer(boost::asio::io_context& io, const base::Clock& clock);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  /// Calls `then` from the loop after `delay`, in place of what it was to call before. `then` may
  /// destroy the timer.
  void in(base::Clock::Time::duration delay, std::function<void()> then);
  /// The same at a time of the clock.
  void at(base::Clock::Time due, std::function<void()> then);
  void cancel();

 private:
  void clock_advanced() override;
  void wait();
  void expire();
  std::function<void()> end();

  const base::Clock& clock_;
  boost::asio::steady_timer timer_;
  base::Clock::Time due_;
  std::function<void()> then_;  ///< empty: nothing is waited for
  std::shared_ptr<std::uint64_t> turn_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace ka::rpc
