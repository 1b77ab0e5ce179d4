// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/answer.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace ka::clh {

namespace http = boost::beast::http;

struct Answer::State {
  State() {
    parser.header_limit(kMostHead);
    parser.body_limit(kMostBody);
  }

  http::response_parser<http::string_body> parser;
  std::string rest;  ///< what the parser has not taken yet
};

Answer::Answer() : state_(std::make_unique<State>()) {}
Answer::Answer(Answer&&) noexcept = default;
Answer& Answer::operator=(Answer&&) noexcept = default;
Answer::~Answer() = default;

base::Result<bool> Answer::feed(std::string_view bytes) {
  http::response_parser<http::string_body>& parser = state_->parser;
  std::string& rest = state_->rest;
  rest += bytes;
  std::size_t taken = 1;
  while (taken > 0 && !rest.empty() && !parser.is_done()) {
    boost::system::error_code error;
    taken = parser.put(boost::asio::buffer(rest), error);
    rest.erase(0, taken);
    if (error == http::error::need_more) break;
    if (error) return base::fail(base::ErrorCode::kInvalid, "its API: " + error.message());
    // Cloud Hypervisor never sends chunks, and Beast's parser aborts at some that are malformed.
    if (parser.is_header_done() && parser.chunked()) {
      return base::fail(base::ErrorCode::kInvalid, "its API: an answer in chunks");
    }
  }
  return parser.is_done();
}

int Answer::status() const { return static_cast<int>(state_->parser.get().result_int()); }

const std::string& Answer::body() const { return state_->parser.get().body(); }

std::string get_request(std::string_view target) {
  return "GET " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n";
}

}  // namespace ka::clh
