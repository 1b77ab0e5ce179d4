// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/timer.hpp"

#include <boost/asio/io_context.hpp>
#include <chrono>

#include "base/clock.hpp"
#include "tests/catch.hpp"

using namespace ka;

TEST_CASE("on the real clock a timer fires by itself") {
  boost::asio::io_context io;
  const base::Clock clock;
  rpc::Timer timer(io, clock);
  bool called = false;
  timer.in(std::chrono::milliseconds(1), [&] { called = true; });
  io.run();
  CHECK(called);
}
