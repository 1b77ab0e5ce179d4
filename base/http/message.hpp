// SPDX-License-Identifier: Apache-2.0
// An HTTP request and its answer as plain values: what answers them needs no socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ka::http {

class Feed;

/// The process at the other end of a unix socket, as the kernel knew it when it connected
/// (SO_PEERCRED).
struct Peer {
  std::uint32_t uid = 0;
  int pid = 0;
};

struct Request {
  std::string method;  ///< "GET", "PUT", ...
  std::string target;  ///< as sent: "/v1/sandboxes/a%20b?x=1"
  std::string body;
  std::optional<Peer> peer = {};  ///< absent: it came by TCP
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string allow;  ///< with 405: the methods that would do
  /// Of a response that was received by base/tls: when the server wants the next request, at the
  /// earliest (Retry-After). 0: it does not say.
  std::chrono::seconds retry_after{0};
  /// Not null: the body is this feed's lines from now on, one chunk each, without an end.
  Feed* feed = nullptr;
  /// Not empty: the response comes later, by one call of what this is called with.
  using Later = std::function<void(std::function<void(Response)>)>;
  Later later = {};
};

/// `{"error": text}`.
Response error_response(int status, std::string_view text);

}  // namespace ka::http
