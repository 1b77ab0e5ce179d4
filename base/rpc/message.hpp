// SPDX-License-Identifier: Apache-2.0
// Calls and answers as ttrpc carries them. Payloads are opaque bytes here: their owner knows how
// to read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ttrpc/envelope.hpp"
#include "base/ttrpc/frame.hpp"

namespace ka::rpc {

using ttrpc::Code;

struct Request {
  std::string service;
  std::string method;
  std::string payload;
  std::chrono::nanoseconds timeout{};  ///< timeout of the caller; 0: none
  std::vector<std::pair<std::string, std::string>> metadata;

  bool operator==(const Request&) const = default;
};

struct Response {
  Code code = Code::kOk;
  std::string message;  ///< text, where `code` is not kOk
  std::string payload;

  bool operator==(const Response&) const = default;
};

/// The response of a server without the method, with the message of Go's server.
Response unimplemented(const Request& request);

/// Absent when the bytes are no such message.
std::optional<Request> decode_request(std::string_view data);
std::optional<Response> decode_response(std::string_view data);

/// A whole frame. Absent when it would be larger than ttrpc allows.
std::optional<std::string> encode_request(std::uint32_t stream, const Request& request);
/// A whole frame. An answer that is too large is replaced by an error.
std::string encode_response(std::uint32_t stream, const Response& response);

}  // namespace ka::rpc
