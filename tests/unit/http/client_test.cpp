// SPDX-License-Identifier: Apache-2.0
// The client against servers that are not what they should be.
#include "base/http/client.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/http/listen.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using base::ErrorCode;

namespace {

/// Accepts one client, reads what it sends first, says its text, and hangs up.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer)
      : listener_(http::UnixListener::open(path()).value()),
        thread_([this, answer = std::move(answer)] { serve(answer); }) {}
  ~OneAnswer() { thread_.join(); }

  std::filesystem::path path() const { return dir_.path() / "sock"; }

 private:
  void serve(const std::string& answer) {
    base::Fd client;
    while (!client) client.reset(::accept(listener_.fd(), nullptr, nullptr));
    char request[4096];
    if (::recv(client.get(), request, sizeof(request), 0) <= 0) return;
    ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  }

  tests::TempDir dir_;
  http::UnixListener listener_;
  std::thread thread_;
};

base::Result<http::Response> get(const std::string& answer) {
  const OneAnswer server(answer);
  return http::call(server.path(), {"GET", "/", ""});
}

}  // namespace

TEST_CASE("a response is read by its length", "[http]") {
  const auto answer = get("HTTP/1.1 404 Not Found\r\nServer: x\r\ncontent-length:  5\r\n\r\nhello");
  REQUIRE(answer.has_value());
  CHECK(answer->status == 404);
  CHECK(answer->body == "hello");
}

TEST_CASE("without a listener, the daemon is unavailable", "[http]") {
  const tests::TempDir dir;
  for (const auto& path : {dir.path() / "nothing", dir.path() / std::string(200, 'x')}) {
    const auto answer = http::call(path, {"GET", "/", ""});
    REQUIRE_FALSE(answer.has_value());
  }
  CHECK(http::call(dir.path() / "nothing", {"GET", "/", ""}).error().code ==
        ErrorCode::kUnavailable);
}

TEST_CASE("a daemon that does not answer is waited for no longer than the caller does", "[http]") {
  const tests::TempDir dir;
  const auto listener = http::UnixListener::open(dir.path() / "sock").value();
  const base::Fd signal(::eventfd(1, EFD_CLOEXEC));
  auto wait_limit = base::WaitLimit::of(std::chrono::milliseconds(50));
  std::string reason = "the daemon: no response in time";
  SECTION("its limit") {}
  SECTION("a signal") {
    wait_limit = {.deadline = base::Deadline::none(), .interrupt = signal.get()};
    reason = "the daemon: interrupted by a signal";
  }
  const auto answer = http::call(dir.path() / "sock", {"GET", "/", ""}, wait_limit);
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error() == base::Error{ErrorCode::kUnavailable, reason, 0});
}

TEST_CASE("a truncated or invalid HTTP response is an error", "[http]") {
  const char* answer = GENERATE("", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 2", "HTTP/1.1 abc OK\r\n\r\n",
                                "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nno field\r\n\r\n",
                                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                                "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n");
  CAPTURE(answer);
  const auto got = get(answer);
  REQUIRE_FALSE(got.has_value());
  CHECK(got.error().code == ErrorCode::kUnavailable);
}

TEST_CASE("lines are delivered as they arrive, across chunks", "[http]") {
  const OneAnswer server(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\none\nt\r\n8\r\nwo\nthree\r\n1\r\n\n\r\n0\r\n\r\n");
  std::vector<std::string> lines;
  const auto ended = http::stream_lines(server.path(), "/", [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  });
  CHECK(ended.has_value());
  CHECK(lines == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("a stream that ends early is an error, a rejected one a response", "[http]") {
  const auto none = [](std::string_view) { return true; };
  {
    const OneAnswer server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
    CHECK_FALSE(http::stream_lines(server.path(), "/", none).has_value());
  }
  {
    const OneAnswer server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
    CHECK_FALSE(http::stream_lines(server.path(), "/", none).has_value());
  }
  const OneAnswer server("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
  const auto refused = http::stream_lines(server.path(), "/", none);
  REQUIRE(refused.has_value());
  CHECK(refused->status == 503);
  CHECK(refused->body == "busy");
}
