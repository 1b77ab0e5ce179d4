// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/answer.hpp"

#include "tests/catch.hpp"
#include "tests/peers/clh/scripted_api.hpp"

using namespace ka;
using base::ErrorCode;
using clh::Answer;

TEST_CASE("an answer is whole when its last byte is there, however it is cut") {
  const std::string text = tests::http_answer(200, tests::vm_info(2));
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size()}) {
    Answer answer;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      const auto whole = answer.feed(std::string_view(text).substr(at, piece));
      REQUIRE(whole);
      CHECK(*whole == (at + piece >= text.size()));
    }
    CHECK(answer.status() == 200);
    CHECK(answer.body() == tests::vm_info(2));
  }
}

TEST_CASE("an error without a body is an answer") {
  Answer answer;
  CHECK(answer.feed(tests::http_answer(404, "")) == true);
  CHECK(answer.status() == 404);
  CHECK(answer.body().empty());
}

TEST_CASE("what is no HTTP, in chunks, or too long, is refused") {
  CHECK(Answer()
            .feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
            .error()
            .code == ErrorCode::kInvalid);
  CHECK(Answer().feed("{\"QMP\": {}}\r\n\r\n").error().code == ErrorCode::kInvalid);
  CHECK(Answer()
            .feed("HTTP/1.1 200 OK\r\nX: " + std::string(2 * clh::kMostHead, 'x') + "\r\n\r\n")
            .error()
            .code == ErrorCode::kInvalid);
  CHECK(Answer().feed("HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n").error().code ==
        ErrorCode::kInvalid);
}
