// SPDX-License-Identifier: Apache-2.0
// One unary gRPC call to a server on a unix socket, from Asio's loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/grpc/exchange.hpp"
#include "base/result.hpp"
#include "base/rpc/message.hpp"
#include "base/rpc/socket.hpp"
#include "base/rpc/timer.hpp"

namespace ka::grpc {

class Call {
 public:
  /// Called once, from the loop; may destroy the call. kUnavailable: the response did not come in
  /// time, or ended early; kInvalid: it is no gRPC, or longer than is read.
  using Done = std::function<void(base::Result<rpc::Response>)>;

  /// Sends the request over a connected, non-blocking socket. `deadline`: for the whole response.
  Call(boost::asio::io_context& io, const base::Clock& clock, base::Fd connected,
       const Request& request, std::chrono::milliseconds deadline, Done done, Limits limits = {});
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// Nothing is called after that.
  ~Call() = default;

 private:
  void receive(std::string_view bytes);
  void flush();
  void end(base::Result<rpc::Response> response);

  Done done_;
  Exchange exchange_;
  rpc::Timer deadline_;
  std::optional<rpc::Socket> socket_;
};

}  // namespace ka::grpc
