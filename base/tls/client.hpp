// SPDX-License-Identifier: Apache-2.0
// A blocking HTTPS client: one request on a connection of its own.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "base/http/exchange.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"
#include "base/tls/session.hpp"

namespace ka::tls {

/// Sends a request and waits for its answer; no read or write takes longer than `limit`. Of the
/// answer, status, body and retry_after are filled in. Errors are those of Session, and kInvalid:
/// the answer is no HTTP, or longer than 64 MiB.
base::Result<http::Response> call(const Server& server, const http::Request& request,
                                  const http::RequestFields& fields, std::chrono::seconds limit);

/// Sends a request and hands over the lines of a successful answer (without their ends) as they
/// come, until it ends, or `handle` returns false: a response with status 200 and no body. Another
/// answer comes back. `silence`: how long no byte may come before that is an error (kUnavailable).
/// A line may have 8 MiB.
base::Result<http::Response> stream_lines(const Server& server, const http::Request& request,
                                          const http::RequestFields& fields,
                                          std::chrono::seconds silence,
                                          const std::function<bool(std::string_view line)>& handle);

}  // namespace ka::tls
