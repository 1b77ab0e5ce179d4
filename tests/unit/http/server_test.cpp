// SPDX-License-Identifier: Apache-2.0
// The HTTP server over real sockets, with clients as bad as they come.
#include "base/http/server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/http/feed.hpp"
#include "base/http/listen.hpp"
#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"
#include "tests/text.hpp"

using namespace ka;
using namespace std::chrono_literals;
using tests::contains;

namespace {

/// A client that sends and reads what it likes, while the server runs in the same thread.
class Client {
 public:
  explicit Client(const std::filesystem::path& path) {
    auto connected = base::connect_unix(path);
    REQUIRE(connected);
    fd_ = std::move(*connected);
  }

  /// Sends what the socket takes now.
  std::size_t send(std::string_view text) {
    const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  void half_close() { ::shutdown(fd_.get(), SHUT_WR); }
  void hang_up() { fd_.reset(); }

  /// Reads what is there now; sets `ended` at the end of the stream.
  void receive() {
    char buffer[65536];
    for (;;) {
      const ssize_t size = ::recv(fd_.get(), buffer, sizeof(buffer), 0);
      if (size > 0) {
        received.append(buffer, static_cast<std::size_t>(size));
        continue;
      }
      if (size == 0 || (errno != EAGAIN && errno != EINTR)) ended = true;
      return;
    }
  }

  std::string received;
  bool ended = false;

 private:
  base::Fd fd_;
};

struct Fixture {
  explicit Fixture(http::Limits limits = {}) {
    listener.emplace(http::UnixListener::open(path()).value());
    server.emplace(
        io, clock, listener->fd(), [this](const http::Request& request) { return answer(request); },
        [this](const std::string& trouble) { troubles.push_back(trouble); }, limits);
  }

  std::filesystem::path path() const { return dir.path() / "sub" / "api.sock"; }

  http::Response answer(const http::Request& request) {
    ++requests;
    peer = request.peer;
    if (request.target == "/feed") {
      return {.content_type = "application/x-ndjson", .body = {}, .allow = {}, .feed = &feed};
    }
    return {.body = request.method + " " + request.target + " " + request.body};
  }

  void run_until(const std::function<bool()>& done) { tests::run_until(io, done); }

  /// Whether the server has hung up by now.
  bool has_dropped(Client& client) {
    tests::run_ready(io);
    client.receive();
    return client.ended;
  }

  std::string exchange(std::string_view text) {
    Client client(path());
    client.send(text);
    run_until([&] {
      client.receive();
      return client.ended;
    });
    return client.received;
  }

  bool works() {
    return contains(exchange("GET /works HTTP/1.1\r\nConnection: close\r\n\r\n"), "GET /works");
  }

  tests::TempDir dir;
  tests::TestClock clock;
  boost::asio::io_context io{1};
  http::Feed feed;
  int requests = 0;
  std::optional<http::Peer> peer;
  std::vector<std::string> troubles;
  std::optional<http::UnixListener> listener;
  std::optional<http::Server> server;
};

}  // namespace

TEST_CASE("a request has its client's process", "[http]") {
  Fixture f;
  REQUIRE(f.works());
  REQUIRE(f.peer);
  CHECK(f.peer->pid == ::getpid());
  CHECK(f.peer->uid == ::getuid());
}

TEST_CASE("a server changes to another listener, and keeps its clients", "[http]") {
  Fixture f;
  Client former(f.path());
  former.send("GET /former HTTP/1.1\r\n\r\n");
  f.run_until([&] {
    former.receive();
    return contains(former.received, "GET /former");
  });
  std::filesystem::remove(f.path());
  REQUIRE(f.listener->restore() == true);
  REQUIRE(f.server->listen(f.listener->fd()));
  CHECK(f.works());
  former.send("GET /again HTTP/1.1\r\n\r\n");
  f.run_until([&] {
    former.receive();
    return contains(former.received, "GET /again");
  });
  CHECK(f.troubles.empty());
}

TEST_CASE("a server that cannot accept connections reports why", "[http]") {
  Fixture f;
  const base::Fd not_listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  const http::Server server(
      f.io, f.clock, not_listening.get(),
      [&](const http::Request& request) { return f.answer(request); },
      [&](const std::string& trouble) { f.troubles.push_back(trouble); });
  tests::run_ready(f.io);
  CHECK(f.troubles == std::vector<std::string>{"cannot accept a connection: Invalid argument"});
  f.clock.advance(100ms);
  tests::run_ready(f.io);
  CHECK(f.troubles.size() == 2);
}

TEST_CASE("a client that disconnects causes no error", "[http]") {
  Fixture f;
  Client client(f.path());
  client.send("GET /a HTT");
  client.hang_up();
  CHECK(f.works());
  CHECK(f.troubles.empty());
}

TEST_CASE("a request is answered, and the connection kept alive", "[http]") {
  Fixture f;
  Client client(f.path());
  client.send("GET /a HTTP/1.1\r\n\r\nPUT /b HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody");
  f.run_until([&] {
    client.receive();
    return contains(client.received, "PUT /b body");
  });
  CHECK(contains(client.received, "HTTP/1.1 200 OK"));
  CHECK(contains(client.received, "GET /a "));
  CHECK_FALSE(client.ended);
  CHECK(f.requests == 2);
}

TEST_CASE("a client that expects 100-continue gets it", "[http]") {
  Fixture f;
  Client client(f.path());
  client.send("PUT /b HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  f.run_until([&] {
    client.receive();
    return contains(client.received, "100 Continue\r\n\r\n");
  });
  client.send("body");
  f.run_until([&] {
    client.receive();
    return contains(client.received, "PUT /b body");
  });
}

TEST_CASE("a body too large is rejected by its Content-Length alone", "[http]") {
  Fixture f;
  const std::string answer = f.exchange("PUT /b HTTP/1.1\r\nContent-Length: 10485760\r\n\r\n");
  CHECK(contains(answer, "413 Payload Too Large"));
  CHECK(contains(answer, R"({"error":"the body is larger than 1048576 bytes"})"));
  CHECK(f.requests == 0);
  CHECK(f.works());
}

TEST_CASE("a body of the largest size is accepted, and one byte more is not", "[http]") {
  Fixture f({.body = 1000});
  const auto answer = [&f](std::size_t size) {
    return f.exchange("PUT /b HTTP/1.1\r\nConnection: close\r\nContent-Length: " +
                      std::to_string(size) + "\r\n\r\n" + std::string(size, 'x'));
  };
  CHECK(contains(answer(1000), "200 OK"));
  CHECK(contains(answer(1001), "413"));
}

// Beast counts the request's line with the fields, or not, as they come in one piece or in two.
TEST_CASE("a header of the largest size is accepted, and one of a line more is not", "[http]") {
  Fixture f;
  const auto answer = [&f](std::size_t size) {
    const std::string begin = "Connection: close\r\nX: ", end = "\r\n\r\n";
    return f.exchange("GET /b HTTP/1.1\r\n" + begin +
                      std::string(size - begin.size() - end.size(), 'x') + end);
  };
  CHECK(contains(answer(http::Limits().header), "200 OK"));
  CHECK(contains(answer(http::Limits().header + 64), "431"));
}

TEST_CASE("a chunked body is rejected when it exceeds the limit", "[http]") {
  Fixture f({.body = 1000});
  const std::string chunk = "100\r\n" + std::string(256, 'x') + "\r\n";
  std::string request = "PUT /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 40; ++i) request += chunk;
  CHECK(contains(f.exchange(request), "413"));
  CHECK(f.requests == 0);
}

TEST_CASE("a client that keeps sending a rejected body still gets the response", "[http]") {
  Fixture f;
  Client client(f.path());
  client.send("PUT /b HTTP/1.1\r\nContent-Length: 10485760\r\n\r\n");
  const std::string block(65536, 'x');
  std::size_t sent = 0;
  f.run_until([&] {
    sent += client.send(block);
    client.receive();
    return sent >= 10485760;
  });
  client.half_close();
  f.run_until([&] {
    client.receive();
    return client.ended;
  });
  CHECK(contains(client.received, "413"));
}

TEST_CASE("non-HTTP gets 400, endless headers 431", "[http]") {
  Fixture f;
  CHECK(contains(f.exchange("hello\r\n\r\n"), "400 Bad Request"));
  CHECK(contains(f.exchange(std::string("GET /\0 HTTP/1.1\r\n\r\n", 19)), "400 Bad Request"));
  CHECK(contains(f.exchange("PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), "400"));
  CHECK(
      contains(f.exchange("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"), "431"));
  CHECK(f.requests == 0);
  CHECK(f.works());
}

TEST_CASE("a client that stalls is dropped, and others are not affected", "[http]") {
  Fixture f({.read = 300ms});
  const char* beginning = GENERATE("", "GET /a HT", "GET /a HTTP/1.1\r\nX: 1\r\n",
                                   "PUT /a HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf",
                                   "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
  Client client(f.path());
  client.send(beginning);
  CHECK(f.works());
  f.clock.advance(299ms);
  CHECK_FALSE(f.has_dropped(client));
  f.clock.advance(1ms);
  CHECK(f.has_dropped(client));
  CHECK(f.requests == 1);
}

TEST_CASE("a slow trickle of bytes does not extend the deadline", "[http]") {
  Fixture f({.read = 300ms});
  Client client(f.path());
  client.send("GET /");
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(f.has_dropped(client));
    f.clock.advance(100ms);
    client.send("a");
  }
  CHECK(f.has_dropped(client));
}

TEST_CASE("a client that does not read its response is dropped", "[http]") {
  Fixture f({.write = 300ms});
  Client client(f.path());
  const std::string body(900'000, 'x');
  std::string rest = "PUT /b HTTP/1.1\r\nContent-Length: 900000\r\n\r\n" + body;
  f.run_until([&] {
    rest.erase(0, client.send(rest));
    return f.requests == 1;
  });
  tests::run_ready(f.io);
  f.clock.advance(300ms);
  CHECK(f.has_dropped(client));
  CHECK(client.received.size() < body.size());
}

TEST_CASE("a connection that is kept alive may be silent up to the limit between two requests",
          "[http]") {
  Fixture f({.read = 300ms, .write = 200ms});
  Client client(f.path());
  for (int i = 0; i < 3; ++i) {
    client.send("GET /a HTTP/1.1\r\n\r\n");
    CHECK_FALSE(f.has_dropped(client));
    f.clock.advance(299ms);
  }
  CHECK(f.requests == 3);
  f.clock.advance(1ms);
  CHECK(f.has_dropped(client));
}

TEST_CASE("a client that disconnects halfway affects no other", "[http]") {
  Fixture f;
  for (const char* beginning : {"GET /a HT", "PUT /a HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
                                "GET /whole HTTP/1.1\r\n\r\n", "GET /feed HTTP/1.1\r\n\r\n"}) {
    Client client(f.path());
    client.send(beginning);
    tests::run_ready(f.io);
    client.hang_up();
  }
  CHECK(f.works());
  f.run_until([&] { return !f.feed.has_listeners(); });
}

TEST_CASE("with too many clients, the longest idle ones are dropped", "[http]") {
  Fixture f({.connections = 8});
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 50; ++i) idle.push_back(std::make_unique<Client>(f.path()));
  CHECK(f.works());
  int open = 0;
  for (const auto& client : idle) {
    client->receive();
    open += client->ended ? 0 : 1;
  }
  CHECK(open <= 8);
  CHECK(open >= 6);
}

TEST_CASE("as many clients as the limit stay, and one more drops one", "[http]") {
  Fixture f;
  std::vector<std::unique_ptr<Client>> clients;
  const auto connect = [&] {
    clients.push_back(std::make_unique<Client>(f.path()));
    tests::run_ready(f.io);
  };
  const auto open = [&] {
    return std::ranges::count_if(clients, [&](auto& client) { return !f.has_dropped(*client); });
  };
  const auto most = static_cast<std::ptrdiff_t>(http::Limits{}.connections);
  for (std::ptrdiff_t i = 0; i < most; ++i) connect();
  CHECK(open() == most);
  connect();
  CHECK(open() == most);
}

TEST_CASE("a feed's lines come as chunks", "[http]") {
  Fixture f;
  Client client(f.path());
  client.send("GET /feed HTTP/1.1\r\n\r\n");
  f.run_until([&] { return f.feed.has_listeners(); });
  tests::run_ready(f.io);
  f.clock.advance(1h);  // a listener may stay for as long as it likes
  f.feed.publish("{\"a\":1}\n");
  f.feed.publish("{\"b\":2}\n");
  f.run_until([&] {
    client.receive();
    return contains(client.received, "\r\n\r\n8\r\n{\"a\":1}\n\r\n8\r\n{\"b\":2}\n\r\n");
  });
  CHECK(contains(client.received, "Transfer-Encoding: chunked"));
}

TEST_CASE("a listener that does not read is dropped", "[http]") {
  Fixture f({.lines_behind = 100});
  Client lazy(f.path());
  lazy.send("GET /feed HTTP/1.1\r\n\r\n");
  f.run_until([&] { return f.feed.has_listeners(); });
  const std::string line(10'000, 'x');
  int published = 0;
  f.run_until([&] {
    f.feed.publish(line);
    return ++published > 10'000 || !f.feed.has_listeners();
  });
  CHECK(published < 1000);
  CHECK(f.works());
}

TEST_CASE("listeners are counted", "[http]") {
  Fixture f;
  std::vector<std::unique_ptr<Client>> listeners;
  for (std::size_t i = 0; i < http::Limits{}.streams; ++i) {
    listeners.push_back(std::make_unique<Client>(f.path()));
    listeners.back()->send("GET /feed HTTP/1.1\r\n\r\n");
    CHECK_FALSE(f.has_dropped(*listeners.back()));
    CHECK(contains(listeners.back()->received, "200 OK"));
  }
  Client more(f.path());
  more.send("GET /feed HTTP/1.1\r\n\r\n");
  CHECK_FALSE(f.has_dropped(more));
  CHECK(contains(more.received, "503"));
  listeners.front()->hang_up();
  tests::run_ready(f.io);
  Client c(f.path());
  c.send("GET /feed HTTP/1.1\r\n\r\n");
  f.run_until([&] {
    c.receive();
    return contains(c.received, "200 OK");
  });
}

TEST_CASE("a server that ends closes its connections", "[http]") {
  Fixture f;
  Client reader(f.path()), listener(f.path());
  listener.send("GET /feed HTTP/1.1\r\n\r\n");
  f.run_until([&] { return f.feed.has_listeners(); });
  f.server.reset();
  CHECK_FALSE(f.feed.has_listeners());
  f.run_until([&] {
    reader.receive();
    listener.receive();
    return reader.ended && listener.ended;
  });
}
