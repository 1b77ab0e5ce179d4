// SPDX-License-Identifier: Apache-2.0
// One connection's server side: bytes in, calls out, answers back in any order. It knows nothing of
// sockets: bytes are handed in, and given to `send`, so that a socket can carry it as well as one
// lane of NRI's mux.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/rpc/message.hpp"

namespace ka::rpc {

/// Takes bytes to the peer, in the order of the calls.
using Send = std::function<void(std::string)>;

/// Answers one call, at once or later. The first answer counts; one that comes after the
/// connection's end goes nowhere.
using Reply = std::function<void(const Response&)>;

/// Gets every unary call, known or not: what it does not know it answers with unimplemented(), or
/// passes on as the opaque bytes that it is. It must not end the server from within.
using Handler = std::function<void(Request, Reply)>;

class Server {
 public:
  Server(Send send, Handler handler);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Must not be called from within `send`.
  void receive(std::string_view bytes);

 private:
  struct Lane;

  void handle(const ttrpc::Frame& frame);
  void refuse(std::uint32_t stream, Code code, std::string message);

  std::shared_ptr<Lane> lane_;  ///< replies hold it weakly
  Handler handler_;
  ttrpc::Decoder decoder_;
  std::uint32_t last_stream_ = 0;
};

}  // namespace ka::rpc
