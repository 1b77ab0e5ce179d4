// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/outbox.hpp"

#include <sys/socket.h>

#include <array>
#include <string>
#include <vector>

#include "base/unix_socket.hpp"
#include "shim-ext/proxy/socket.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using namespace ka::proxy;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\n";

struct Scene {
  std::string socket() const { return (dir.path() / "api.sock").string(); }
  void listen() { listener = std::move(*base::listen_unix(socket())); }

  void turn() {
    loop.turn(clock.now());
    outbox.on_time();
  }
  void pass(seconds time) {
    clock.advance(time);
    outbox.on_time();
    turn();
  }
  base::Fd accept() const {
    return base::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  static std::string read(const base::Fd& fd) {
    std::array<char, 65536> block{};
    const ssize_t got = ::recv(fd.get(), block.data(), block.size(), 0);
    return got <= 0 ? std::string() : std::string(block.data(), static_cast<std::size_t>(got));
  }
  /// Takes the next request, answers it, and returns its first line.
  std::string serve(const std::string& answer = kOk) {
    turn();
    base::Fd client = accept();
    if (!client) return "nothing";
    turn();
    const std::string request = read(client);
    ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    client.reset();
    turn();
    turn();
    return request.substr(0, request.find(" HTTP"));
  }

  tests::TempDir dir;
  tests::TestClock clock;
  Loop loop{clock};
  base::Fd listener;
  Outbox outbox{loop, socket()};
};

}  // namespace

TEST_CASE("a report is a request to the API") {
  Scene scene;
  scene.listen();
  scene.outbox.post({"PUT", "/v1/sandboxes/a", "{\"vmm_pid\":1}"});
  scene.turn();
  const base::Fd client = scene.accept();
  REQUIRE(client);
  CHECK(Scene::read(client) ==
        "PUT /v1/sandboxes/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"vmm_pid\":1}");
}

TEST_CASE("reports are sent one after another, in order") {
  Scene scene;
  scene.listen();
  for (const char* path : {"/1", "/2", "/3"}) scene.outbox.post({"PUT", path, ""});
  CHECK(scene.serve() == "PUT /1");
  CHECK(scene.serve("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") == "PUT /2");
  CHECK(scene.serve() == "PUT /3");
  CHECK(scene.serve() == "nothing");
  CHECK(scene.outbox.idle());
  CHECK_FALSE(scene.outbox.deadline());
}

TEST_CASE("without a daemon the last report of each path is kept") {
  Scene scene;
  scene.outbox.post({"PUT", "/a", "1"});
  scene.outbox.post({"PUT", "/b", "2"});
  scene.outbox.post({"DELETE", "/a", ""});
  CHECK(scene.outbox.idle());
  REQUIRE(scene.outbox.deadline());
  scene.listen();
  CHECK(scene.serve() == "nothing");
  scene.pass(seconds(31));
  CHECK(scene.serve() == "PUT /b");
  CHECK(scene.serve() == "DELETE /a");
  CHECK(scene.serve() == "nothing");
}

TEST_CASE("delays between attempts grow to a limit") {
  Scene scene;
  scene.outbox.post({"PUT", "/a", ""});
  std::vector<Loop::Time::duration> pauses;
  for (int i = 0; i < 9; ++i) {
    REQUIRE(scene.outbox.deadline());
    pauses.push_back(*scene.outbox.deadline() - scene.clock.now());
    scene.clock.advance(pauses.back());
    scene.outbox.on_time();
  }
  CHECK(pauses == std::vector<Loop::Time::duration>{milliseconds(500), seconds(1), seconds(2),
                                                    seconds(4), seconds(8), seconds(16),
                                                    seconds(30), seconds(30), seconds(30)});
}

TEST_CASE("a daemon that hangs, disconnects or sends garbage is retried later") {
  Scene scene;
  scene.listen();
  scene.outbox.post({"PUT", "/a", ""});
  scene.turn();
  const base::Fd hung = scene.accept();
  REQUIRE(hung);
  scene.pass(Outbox::kTimeout + seconds(1));
  CHECK(scene.outbox.idle());
  scene.pass(seconds(31));
  CHECK(scene.serve("") == "PUT /a");
  scene.pass(seconds(31));
  CHECK(scene.serve("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") == "PUT /a");
  scene.pass(seconds(31));
  CHECK(scene.serve() == "PUT /a");
  CHECK(scene.serve() == "nothing");
}

TEST_CASE("an endless response is aborted, and the report retried") {
  Scene scene;
  scene.listen();
  scene.outbox.post({"PUT", "/a", ""});
  scene.turn();
  const base::Fd client = scene.accept();
  REQUIRE(client);
  const std::string noise(50000, 'x');
  for (int i = 0; i < 200; ++i) {
    ::send(client.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    scene.turn();
  }
  CHECK(scene.outbox.idle());
  scene.pass(seconds(31));
  CHECK(scene.serve() == "PUT /a");
}

TEST_CASE("the queue is bounded, and the newest reports stay") {
  Scene scene;
  for (std::size_t i = 0; i < Outbox::kMost + 5; ++i) {
    scene.outbox.post({"PUT", "/" + std::to_string(i), ""});
  }
  scene.listen();
  scene.pass(seconds(31));
  CHECK(scene.serve() == "PUT /5");
}

TEST_CASE("no byte of a path ends its request line") {
  Scene scene;
  scene.listen();
  scene.outbox.post({"PUT", "/a HTTP/1.1\r\n\r\nDELETE /b\x7f\xc3", ""});
  CHECK(scene.serve() == "PUT /a%20HTTP/1.1%0D%0A%0D%0ADELETE%20/b%7F%C3");
}
