// SPDX-License-Identifier: Apache-2.0
// An io_context and a clock that run together, without waiting.
#pragma once

#include <boost/asio/io_context.hpp>

#include "tests/test_clock.hpp"

namespace ka::tests {

/// Runs what can be run now.
inline void run_ready(boost::asio::io_context& io) {
  io.restart();
  while (io.poll() > 0) {
  }
}

/// Lets `time` pass on the clock, in steps short enough for the timers of the product.
inline void run_for(boost::asio::io_context& io, TestClock& clock, base::Clock::Time::duration time,
                    base::Clock::Time::duration step = std::chrono::milliseconds(5)) {
  run_ready(io);
  for (auto passed = step; passed <= time; passed += step) {
    clock.advance(step);
    run_ready(io);
  }
}

}  // namespace ka::tests
