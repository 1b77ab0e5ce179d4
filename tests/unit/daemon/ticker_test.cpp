// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/ticker.hpp"

#include <functional>

#include "tests/catch.hpp"
#include "tests/run_loop.hpp"

using namespace ka;
using namespace std::chrono_literals;

namespace {

struct Scene {
  /// Without a turn of the loop in between.
  void pass(std::chrono::milliseconds time) {
    clock.advance(time);
    tests::run_ready(io);
  }

  boost::asio::io_context io;
  tests::TestClock clock;
  int ticks = 0;
  std::function<void()> during = [] {};
  daemon::Ticker ticker{io, clock, 1s, [this] {
                          ++ticks;
                          during();
                        }};
};

}  // namespace

TEST_CASE("a ticker ticks once per interval, first after one interval") {
  Scene scene;
  scene.pass(999ms);
  CHECK(scene.ticks == 0);
  scene.pass(1ms);
  CHECK(scene.ticks == 1);
  tests::run_for(scene.io, scene.clock, 3s, 100ms);
  CHECK(scene.ticks == 4);
}

TEST_CASE("a slow tick does not stretch the schedule") {
  Scene scene;
  scene.during = [&] { scene.clock.advance(400ms); };
  scene.pass(1s);
  scene.pass(599ms);
  CHECK(scene.ticks == 1);
  scene.pass(1ms);
  CHECK(scene.ticks == 2);
}

TEST_CASE("ticks missed during suspend are not repeated") {
  Scene scene;
  scene.pass(10s);
  CHECK(scene.ticks == 1);
  scene.pass(999ms);
  CHECK(scene.ticks == 1);
  scene.pass(1ms);
  CHECK(scene.ticks == 2);
}

TEST_CASE("a new interval starts now") {
  Scene scene;
  scene.pass(900ms);
  scene.ticker.set_interval(5s);
  scene.pass(4999ms);
  CHECK(scene.ticks == 0);
  scene.pass(1ms);
  CHECK(scene.ticks == 1);
}
