// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "base/rpc/client.hpp"
#include "base/rpc/server.hpp"
#include "base/rpc/socket.hpp"
#include "base/rpc/timer.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using namespace ka::rpc;
using namespace std::chrono_literals;

namespace {

/// A server, what it was asked and what it sent.
struct ServerScene {
  ServerScene()
      : server([this](std::string bytes) { decoder.feed(bytes); },
               [this](Request request, Reply reply) {
                 requests.push_back(std::move(request));
                 replies.push_back(std::move(reply));
               }) {}

  void call(std::uint32_t stream, const std::string& method, const std::string& payload = "") {
    server.receive(*encode_request(stream, {"svc", method, payload, {}, {}}));
  }

  /// The next answer: its stream and itself.
  std::pair<std::uint32_t, Response> answer() {
    const auto frame = decoder.next();
    REQUIRE(frame);
    REQUIRE(frame->header.type == ttrpc::kResponse);
    return {frame->header.stream, *decode_response(frame->data)};
  }

  ttrpc::Decoder decoder;
  std::vector<Request> requests;
  std::vector<Reply> replies;
  Server server;
};

/// A client, what it sent and how its calls ended.
struct ClientScene {
  ClientScene() : client(io, [this](std::string bytes) { decoder.feed(bytes); }) {}

  std::uint32_t call() {
    return client.call({"svc", "Do", "", {}, {}},
                       [this](const Response& response) { ended.push_back(response); });
  }
  void answer(std::uint32_t stream, const Response& response) {
    client.receive(encode_response(stream, response));
  }
  void run() { tests::run_ready(io); }

  boost::asio::io_context io;
  ttrpc::Decoder decoder;
  std::vector<Response> ended;
  Client client;
};

}  // namespace

TEST_CASE("a request survives encoding with all its fields") {
  const Request request{"a.b.Svc", "Do", std::string("\0\xff", 2), 5s, {{"traceparent", "00-1"}}};
  ttrpc::Decoder decoder;
  decoder.feed(*encode_request(7, request));
  const auto frame = decoder.next();
  REQUIRE(frame);
  CHECK(frame->header.stream == 7);
  CHECK(decode_request(frame->data) == request);
}

TEST_CASE("responses may come in any order, each on its stream") {
  ServerScene scene;
  scene.call(1, "A");
  scene.call(3, "B", "opaque");
  CHECK(scene.requests[1].payload == "opaque");
  scene.replies[1]({Code::kOk, "", "b"});
  scene.replies[0]({Code::kOk, "", "a"});
  CHECK(scene.answer() == std::pair<std::uint32_t, Response>{3, {Code::kOk, "", "b"}});
  CHECK(scene.answer() == std::pair<std::uint32_t, Response>{1, {Code::kOk, "", "a"}});
}

TEST_CASE("a second response, and one after the end, are dropped") {
  auto scene = std::make_unique<ServerScene>();
  scene->call(1, "A");
  scene->call(3, "B");
  scene->replies[0]({});
  scene->replies[0]({});
  scene->answer();
  CHECK(scene->decoder.idle());
  const Reply late = scene->replies[1];
  scene.reset();
  late({});
}

TEST_CASE("stream ids must be odd and increasing") {
  ServerScene scene;
  scene.call(3, "A");
  for (const std::uint32_t stream : {2U, 3U, 1U, 0U}) {
    scene.call(stream, "B");
    CHECK(scene.answer().second.code == Code::kInvalidArgument);
  }
  scene.call(5, "C");
  CHECK(scene.requests.size() == 2);
}

TEST_CASE("invalid, oversized and streaming requests are rejected, and the next is served") {
  ServerScene scene;
  scene.server.receive(ttrpc::encode(1, ttrpc::kRequest, 0, "\xff\xff\xff"));
  CHECK(scene.answer().second.code == Code::kInvalidArgument);
  const std::string request = *encode_request(3, {"svc", "Watch", "", {}, {}});
  scene.server.receive(
      ttrpc::encode(3, ttrpc::kRequest, ttrpc::kRemoteOpen, request.substr(ttrpc::kHeaderSize)));
  CHECK(scene.answer().second.code == Code::kUnimplemented);
  scene.server.receive(std::string("\x00\x50\x00\x00\x00\x00\x00\x05\x01\x00", 10));
  CHECK(scene.answer().second.code == Code::kResourceExhausted);
  scene.server.receive(std::string(0x500000, 'x'));
  scene.server.receive(ttrpc::encode(5, ttrpc::kData, 0, "data of no stream"));
  scene.server.receive(ttrpc::encode(5, 99, 0, "unknown"));
  CHECK(scene.decoder.idle());
  scene.call(7, "A");
  CHECK(scene.requests.size() == 1);
}

TEST_CASE("an oversized response becomes an error response") {
  ServerScene scene;
  scene.call(1, "A");
  scene.replies[0]({Code::kOk, "", std::string(ttrpc::kMaxData, 'x')});
  CHECK(scene.answer().second.code == Code::kResourceExhausted);
}

TEST_CASE("calls use odd streams and end with their own responses") {
  ClientScene scene;
  CHECK(scene.call() == 1);
  CHECK(scene.call() == 3);
  CHECK(scene.decoder.next()->header == ttrpc::Header{9, 1, ttrpc::kRequest, 0});
  scene.answer(3, {Code::kUnimplemented, "no", ""});
  scene.answer(1, {Code::kOk, "", "yes"});
  CHECK(scene.ended ==
        std::vector<Response>{{Code::kUnimplemented, "no", ""}, {Code::kOk, "", "yes"}});
}

TEST_CASE("a response without an open call is dropped") {
  ClientScene scene;
  scene.answer(scene.call(), {});
  scene.answer(1, {});
  scene.answer(77, {});
  CHECK(scene.ended.size() == 1);
}

TEST_CASE("an oversized call is not sent") {
  ClientScene scene;
  scene.client.call({"svc", "Do", std::string(ttrpc::kMaxData, 'x'), {}, {}},
                    [&](const Response& response) { scene.ended.push_back(response); });
  scene.run();
  REQUIRE(scene.ended.size() == 1);
  CHECK(scene.ended[0].code == Code::kResourceExhausted);
  CHECK(scene.decoder.idle());
}

TEST_CASE("a client and a server exchange a thousand calls at once, also large ones") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
  boost::asio::io_context io;
  std::unique_ptr<Socket> here, there;
  Server server(
      [&](std::string bytes) { there->send(std::move(bytes)); },
      [](const Request& request, const Reply& reply) { reply({Code::kOk, "", request.payload}); });
  Client client(io, [&](std::string bytes) { here->send(std::move(bytes)); });
  std::string closed;
  here = std::make_unique<Socket>(
      io, base::Fd(pair[0]),
      Socket::Events{[&](std::string_view bytes) { client.receive(bytes); },
                     [&](const std::string& reason) { closed = reason; }});
  there = std::make_unique<Socket>(
      io, base::Fd(pair[1]),
      Socket::Events{[&](std::string_view bytes) { server.receive(bytes); }, nullptr});
  int good = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string payload =
        std::to_string(i) +
        std::string(i == 500 ? std::size_t{3} << 20 : static_cast<std::size_t>(i), 'x');
    client.call({"svc", "Echo", payload, 10s, {}}, [&good, payload](const Response& response) {
      good += response.payload == payload ? 1 : 0;
    });
  }
  tests::run_until(io, [&] { return good == 1000; });
  there.reset();
  tests::run_ready(io);
  CHECK(closed == "closed by the peer");
}

TEST_CASE("timer: a wait calls back once, for the last request") {
  boost::asio::io_context io;
  tests::TestClock clock;
  Timer timer(io, clock);
  std::string called;
  timer.in(1ms, [&] { called += 'a'; });
  timer.in(2ms, [&] { called += 'b'; });
  tests::run_for(io, clock, 1ms, 1ms);
  CHECK(called.empty());
  tests::run_for(io, clock, 5ms, 1ms);
  CHECK(called == "b");
}

TEST_CASE("timer: a wait cancelled after it expired does not call back") {
  boost::asio::io_context io;
  tests::TestClock clock;
  Timer first(io, clock), cancelled(io, clock), renewed(io, clock);
  std::optional<Timer> destroyed;
  destroyed.emplace(io, clock);
  std::string called;
  first.in(0ms, [&] {
    cancelled.cancel();
    renewed.in(1ms, [&] { called += 'n'; });
    destroyed.reset();
  });
  cancelled.in(1ms, [&] { called += 'c'; });
  renewed.in(1ms, [&] { called += 'r'; });
  destroyed->in(1ms, [&] { called += 'd'; });
  clock.advance(5ms);  // all are due, and the loop finds them at once
  tests::run_ready(io);
  CHECK(called.empty());
  clock.advance(1ms);
  tests::run_ready(io);
  CHECK(called == "n");
}

TEST_CASE("timer: its callback may destroy it") {
  boost::asio::io_context io;
  const tests::TestClock clock;
  auto timer = std::make_unique<Timer>(io, clock);
  timer->in(0ms, [&] { timer.reset(); });
  tests::run_ready(io);
  CHECK(timer == nullptr);
}
