// SPDX-License-Identifier: Apache-2.0
#include "base/http/exchange.hpp"

#include <utility>

#include "tests/catch.hpp"

using namespace ka;
using base::ErrorCode;
using http::ResponseReader;

namespace {

constexpr const char* kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nX: y\r\n\r\n";

/// The answer's body, read in pieces of `size`.
std::string body(const std::string& text, std::size_t size) {
  ResponseReader reader;
  bool whole = false;
  for (std::size_t at = 0; at < text.size(); at += size) {
    REQUIRE_FALSE(whole);
    const auto read = reader.feed(std::string_view(text).substr(at, size));
    REQUIRE(read);
    whole = *read;
  }
  if (!whole) REQUIRE(reader.close());
  CHECK(reader.status() == 200);
  return reader.body();
}

ErrorCode refusal(const std::string& text) {
  ResponseReader reader;
  const auto read = reader.feed(text);
  REQUIRE_FALSE(read);
  return read.error().code;
}

}  // namespace

TEST_CASE("a request with a body has its length", "[http]") {
  CHECK(http::format_request({"GET", "/x", ""}) ==
        "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(http::format_request({"PUT", "/x", "{}"}) ==
        "PUT /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  CHECK(http::format_request({"POST", "/x", ""}).ends_with("Content-Length: 0\r\n\r\n"));
}

TEST_CASE("a response is complete with its last byte, however it is split", "[http]") {
  const std::string text =
      GENERATE(as<std::string>{}, "HTTP/1.1 200 OK\r\ncontent-length:  5 \r\n\r\nhello",
               "HTTP/1.1 200 OK\r\nServer: x\r\n\r\nhello", kChunked);
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, text.size()}) {
    CAPTURE(text, size);
    CHECK(body(text, size) == "hello");
  }
}

TEST_CASE("a response may have no body", "[http]") {
  ResponseReader error, nothing;
  CHECK(*error.feed("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n"));
  CHECK(error.status() == 404);
  CHECK(*nothing.feed("HTTP/1.1 204 No Content\r\n\r\n"));
}

TEST_CASE("when a server wants to be called again, in seconds", "[http]") {
  for (const auto& [value, seconds] : {std::pair{"7", 7},
                                       {"0", 0},
                                       {"-7", 0},
                                       {"99999999999", 0},
                                       {"Thu, 26 Nov 2026 18:00:00 GMT", 0}}) {
    CAPTURE(value);
    ResponseReader reader;
    REQUIRE(reader.feed(std::string("HTTP/1.1 429 Too Many Requests\r\nretry-after: ") + value +
                        "\r\n\r\n"));
    CHECK(reader.retry_after() == std::chrono::seconds(seconds));
  }
}

TEST_CASE("invalid or oversized HTTP is rejected", "[http]") {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::string chunks = ok + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string& text :
       {std::string("{\"QMP\": {}}\r\n\r\n"), std::string("HTTP/1.1 abc\r\n"),
        std::string("HTTP/1.1 -12\r\n"), ok + "no field\r\n", ok + "Content-Length: -1\r\n",
        ok + "Content-Length: 1048577\r\n", ok + "X: " + std::string(20000, 'x'),
        ok + "X: " + std::string(20000, 'x') + "\r\n", chunks + "xyz\r\n", chunks + "100001\r\n",
        chunks + "1\r\nab\r\n", chunks + "1;x=y\r\na\r\n",
        ok + "\r\n" + std::string(2 << 20, 'x')}) {
    CAPTURE(text.substr(0, 80));
    CHECK(refusal(text) == ErrorCode::kInvalid);
  }
}

TEST_CASE("a response of the largest size is accepted, and one byte more is not", "[http]") {
  const http::ResponseLimits limits;
  const auto head = [](std::size_t size) {
    const std::string status = "HTTP/1.1 200 OK", length = "Content-Length: 0";
    const std::size_t rest = size - status.size() - length.size();
    return status + "\r\n" + length + "\r\n" + "X: " + std::string(rest - 3, 'x') + "\r\n\r\n";
  };
  const auto body = [](std::size_t size) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" +
           std::string(size, 'x');
  };
  const auto is_whole = [](const std::string& text) {
    ResponseReader reader;
    const auto done = reader.feed(text);
    return done && *done;
  };
  CHECK(is_whole(head(limits.head)));
  CHECK(refusal(head(limits.head + 1)) == ErrorCode::kInvalid);
  CHECK(is_whole(body(limits.body)));
  CHECK(refusal(body(limits.body + 1)) == ErrorCode::kInvalid);
}

TEST_CASE("a truncated response is an error", "[http]") {
  for (const char* text :
       {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    CAPTURE(text);
    ResponseReader reader;
    REQUIRE(reader.feed(text));
    CHECK(reader.close().error().code == ErrorCode::kUnavailable);
  }
}

TEST_CASE("a stream may exceed the limit if its bytes are consumed", "[http]") {
  ResponseReader reader({.head = 64, .body = 8});
  REQUIRE(reader.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
  for (int i = 0; i < 100; ++i) {
    REQUIRE(reader.feed("6\r\n12345\n\r\n"));
    CHECK(std::exchange(reader.body(), {}) == "12345\n");
  }
}
