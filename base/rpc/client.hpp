// SPDX-License-Identifier: Apache-2.0
// One connection's client side: calls out, responses in. Like the server it knows nothing of
// sockets.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "base/rpc/message.hpp"
#include "base/rpc/server.hpp"

namespace ka::rpc {

class Client {
 public:
  /// Called exactly once for each call, never from within call().
  using Done = std::function<void(const Response&)>;

  Client(boost::asio::io_context& io, Send send);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// Drops all calls without calling back: their owners are being destroyed, too.
  ~Client();

  /// Sends a call; returns its stream id. One that is too large ends with kResourceExhausted.
  std::uint32_t call(const Request& request, Done done);

  /// Must not be called from within `send`.
  void receive(std::string_view bytes);

 private:
  void handle(const ttrpc::Frame& frame);
  void end(std::uint32_t stream, const Response& response);

  boost::asio::io_context& io_;
  Send send_;
  ttrpc::Decoder decoder_;
  std::uint32_t next_stream_ = 1;
  std::map<std::uint32_t, Done> calls_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ka::rpc
