// SPDX-License-Identifier: Apache-2.0
// An io_context and a clock that run together, without waiting; and with it where the other side is
// a thread or a program.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>

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

/// Until it holds, however slow the machine is: where it never does, the test's own time limit ends
/// the wait. It is asked once in a turn: it may be a command to a peer, which a second one finds
/// done.
template <typename Condition>
void run_until(boost::asio::io_context& io, Condition condition) {
  const auto work =
      boost::asio::make_work_guard(io);  // between two requests there is nothing to do
  while (!condition()) {
    io.restart();
    io.run_for(std::chrono::milliseconds(5));
  }
}

}  // namespace ka::tests
