// SPDX-License-Identifier: Apache-2.0
// Something that is to be done again and again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>

namespace ka::daemon {

/// Calls a function on a schedule that its own duration does not stretch. Must outlive the running
/// of its io_context.
class Ticker {
 public:
  using Duration = std::chrono::steady_clock::duration;

  Ticker(boost::asio::io_context& io, Duration interval, std::function<void()> tick);

  /// From now on; the next tick is one interval away.
  void set_interval(Duration interval);

 private:
  void wait();

  boost::asio::steady_timer timer_;
  Duration interval_;
  std::function<void()> tick_;
};

}  // namespace ka::daemon
