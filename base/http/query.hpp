// SPDX-License-Identifier: Apache-2.0
// One request to a server on a unix socket, from Asio's loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/http/exchange.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"
#include "base/rpc/socket.hpp"
#include "base/rpc/timer.hpp"

namespace ka::http {

class Query {
 public:
  /// Called once, from the loop; may destroy the query. kUnavailable: the answer did not come in
  /// time, or ended early; kInvalid: it is no HTTP, or longer than is read.
  using Done = std::function<void(base::Result<Response>)>;

  /// Sends the request over a connected, non-blocking socket. `deadline`: for the whole answer.
  Query(boost::asio::io_context& io, const base::Clock& clock, base::Fd connected,
        const Request& request, std::chrono::milliseconds deadline, Done done);
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  /// Nothing is called after that.
  ~Query() = default;

 private:
  void receive(std::string_view bytes);
  void close();
  void end(base::Result<Response> response);

  Done done_;
  ResponseReader reader_;
  rpc::Timer deadline_;
  std::optional<rpc::Socket> socket_;
};

}  // namespace ka::http
