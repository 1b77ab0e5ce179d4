// SPDX-License-Identifier: Apache-2.0
// A task that is repeated at an interval.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

#include "base/clock.hpp"
#include "base/rpc/timer.hpp"

namespace ka::daemon {

/// Calls a function on a schedule that its own duration does not stretch. Must outlive the running
/// of its io_context.
class Ticker {
 public:
  using Duration = base::Clock::Time::duration;

  /// `io` and `clock` must outlive it.
  Ticker(boost::asio::io_context& io, const base::Clock& clock, Duration interval,
         std::function<void()> tick);

  /// From now on; the next tick is one interval away.
  void set_interval(Duration interval);

 private:
  void wait();

  const base::Clock& clock_;
  rpc::Timer timer_;
  Duration interval_;
  base::Clock::Time due_;
  std::function<void()> tick_;
};

}  // namespace ka::daemon
