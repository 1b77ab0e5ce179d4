// SPDX-License-Identifier: Apache-2.0
#include "base/http/query.hpp"

#include <sys/socket.h>

#include <array>
#include <optional>

#include "tests/catch.hpp"
#include "tests/run_loop.hpp"

using namespace ka;
using namespace std::chrono_literals;
using base::ErrorCode;

TEST_CASE("a query ends with the response, its absence, or a timeout", "[http]") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
  base::Fd server(ends[1]);
  boost::asio::io_context io;
  tests::TestClock clock;
  std::optional<base::Result<http::Response>> got;
  std::optional<http::Query> query;
  query.emplace(io, clock, base::Fd(ends[0]), http::Request{"GET", "/", ""}, 1s,
                [&](base::Result<http::Response> response) {
                  got = std::move(response);
                  query.reset();
                });
  const auto say = [&](std::string_view text) {
    ::send(server.get(), text.data(), text.size(), MSG_NOSIGNAL);
    tests::run_ready(io);
  };
  say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n");
  CHECK_FALSE(got);
  SECTION("complete") {
    say("\r\n{}");
    REQUIRE(got);
    CHECK((*got)->body == "{}");
  }
  SECTION("truncated") {
    server.reset();
    tests::run_ready(io);
    REQUIRE(got);
    CHECK(got->error().code == ErrorCode::kUnavailable);
  }
  SECTION("late") {
    clock.advance(999ms);
    tests::run_ready(io);
    CHECK_FALSE(got);
    clock.advance(1ms);
    tests::run_ready(io);
    REQUIRE(got);
    CHECK(got->error().message == "no response in time");
  }
  CHECK_FALSE(query);
}
