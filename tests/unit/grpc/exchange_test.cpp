// SPDX-License-Identifier: Apache-2.0
#include "base/grpc/exchange.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/http2_frames.hpp"

using namespace ka;
using namespace ka::tests;
using base::ErrorCode;

namespace {

const grpc::Request kRequest{"/v1.Service/Method", "question"};
constexpr grpc::Limits kSmall{.message = 1000, .fields = 500, .overhead = 4000};

/// What came of a response that arrives in pieces of `piece` bytes.
base::Result<rpc::Response> answer_to(const std::string& bytes, std::size_t piece = 7,
                                      grpc::Limits limits = {}) {
  grpc::Exchange exchange(kRequest, limits);
  exchange.drain_output();
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto whole = exchange.feed(std::string_view(bytes).substr(at, piece));
    if (!whole) return unexpected(whole.error());
    if (*whole) return exchange.release_response();
    exchange.drain_output();
  }
  return base::fail(ErrorCode::kTransient, "not whole");
}

ErrorCode error_of(const std::string& bytes, grpc::Limits limits = {}) {
  const auto answer = answer_to(bytes, 4096, limits);
  REQUIRE_FALSE(answer);
  CAPTURE(answer.error().message);
  return answer.error().code;
}

}  // namespace

TEST_CASE("a call sends the preface, its path and its framed message") {
  grpc::Exchange exchange(kRequest);
  const std::string output = exchange.drain_output();
  CHECK(output.starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  CHECK(output.ends_with(std::string("\0\0\0\0\x08question", 13)));
  CHECK(exchange.drain_output().empty());
}

TEST_CASE("a response is read in whatever pieces it comes") {
  const std::string message(40000, 'x');
  for (const std::size_t piece : {1u, 7u, 100000u}) {
    const auto answer = answer_to(grpc_response(message), piece);
    REQUIRE(answer);
    CHECK(answer->code == rpc::Code::kOk);
    CHECK(answer->payload == message);
  }
}

TEST_CASE("what the server refuses has its status and its words, made printable") {
  const auto answer = answer_to(grpc_refusal("8", "rejected by rate limit%1B[2J"));
  REQUIRE(answer);
  CHECK(answer->code == rpc::Code::kResourceExhausted);
  CHECK(answer->message == "rejected by rate limit\\x1b[2J");
  const auto late = answer_to(response_head() + data_frames("1") + trailers("13", "broke"));
  REQUIRE(late);
  CHECK(late->code == rpc::Code::kInternal);
  CHECK(late->payload.empty());
}

TEST_CASE("a response that is no gRPC is an error") {
  CHECK(error_of("HTTP/1.1 400 Bad Request\r\n\r\n") == ErrorCode::kInvalid);
  CHECK(
      error_of(settings_frame() + headers_frame({{":status", "404"}}, kEndHeaders | kEndStream)) ==
      ErrorCode::kUnavailable);
  CHECK(error_of(response_head() + data_frames("1") + trailers("ok")) == ErrorCode::kInvalid);
  const std::string half = grpc::frame("message").substr(0, 9);
  CHECK(error_of(response_head() + data_frames(half) + trailers("0")) == ErrorCode::kInvalid);
  const std::string two = grpc::frame("one") + grpc::frame("two");
  CHECK(error_of(response_head() + data_frames(two) + trailers("0")) == ErrorCode::kInvalid);
  std::string compressed = grpc::frame("message");
  compressed[0] = 1;
  CHECK(error_of(response_head() + data_frames(compressed) + trailers("0")) == ErrorCode::kInvalid);
  CHECK(error_of(response_head() + trailers("0")) == ErrorCode::kInvalid);
  CHECK(error_of(response_head() +
                 http2_frame(FrameType::kReset, 0, 1, std::string("\0\0\0\x08", 4))) ==
        ErrorCode::kUnavailable);
}

TEST_CASE("a response that does not end is given up") {
  CHECK(error_of(response_head() + data_frames(std::string(2000, 'x')), kSmall) ==
        ErrorCode::kInvalid);
  std::string many;
  for (int i = 0; i < 20; ++i) many += hpack({{"x-field", "value"}});
  CHECK(error_of(settings_frame() + http2_frame(FrameType::kHeaders, kEndHeaders, 1, many),
                 kSmall) == ErrorCode::kInvalid);
  std::string endless = settings_frame() + headers_frame({{":status", "200"}}, 0);
  for (int i = 0; i < 20; ++i) {
    endless += http2_frame(FrameType::kContinuation, 0, 1, hpack({{"x-field", "value"}}));
  }
  CHECK(error_of(endless) == ErrorCode::kInvalid);
  std::string pings = settings_frame();
  for (int i = 0; i < 1000; ++i) {
    pings += http2_frame(FrameType::kPing, 0, 0, std::string(8, 'p'));
  }
  CHECK(error_of(pings, kSmall) == ErrorCode::kInvalid);
}

TEST_CASE("a response that is cut anywhere is not whole") {
  const std::string bytes = grpc_response("message");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto answer = answer_to(bytes.substr(0, size), 4096);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::kTransient);
  }
}
