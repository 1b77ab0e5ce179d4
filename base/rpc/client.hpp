// SPDX-License-Identifier: Apache-2.0
// One connection's client side: calls out, answers in, each within its time. Like the server it
// knows nothing of sockets.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
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
  /// Ends all calls without a word to those who wait: they are gone or going, too.
  ~Client();

  /// Sends a call; returns its stream id. A call that is not answered within `request.timeout` ends
  /// with kDeadlineExceeded; one that is too large with kResourceExhausted.
  std::uint32_t call(const Request& request, Done done);

  /// Ends a call with kCancelled. ttrpc has no word for it on the wire: an answer that comes later
  /// is dropped. Nothing when it has ended already.
  void cancel(std::uint32_t stream);

  /// The connection ended: every call that waits ends with kUnavailable.
  void close(const std::string& reason);

  /// Must not be called from within `send`.
  void receive(std::string_view bytes);

 private:
  struct Call {
    Done done;
    std::unique_ptr<boost::asio::steady_timer> deadline;
  };
  using Calls = std::map<std::uint32_t, Call>;

  void take(const ttrpc::Frame& frame);
  void end(std::uint32_t stream, const Response& response);
  /// end(), from the loop.
  void end_soon(std::uint32_t stream, Response response);
  void start_deadline(std::uint32_t stream, Call& call, std::chrono::nanoseconds timeout);

  boost::asio::io_context& io_;
  Send send_;
  ttrpc::Decoder decoder_;
  std::uint32_t next_stream_ = 1;
  Calls calls_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ka::rpc
