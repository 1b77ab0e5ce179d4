// SPDX-License-Identifier: Apache-2.0
// The handshake on a connection to a guest before ttrpc begins, without I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "guest-agent/protocol/hybrid.hpp"
#include "guest-agent/protocol/limits.hpp"
#include "guest-agent/protocol/line.hpp"

namespace ka::guest {

enum class Opening {
  kNone,     ///< nothing: a stream socket of the agent's own
  kConnect,  ///< hybrid vsock: "CONNECT <port>\n", answered by "OK <number>\n"
  kMark,     ///< a serial line: see line.hpp
};

class Opener {
 public:
  /// `port`: for kConnect.
  explicit Opener(Opening opening, std::uint32_t port = kPort);

  /// What to send first; empty where ttrpc may begin at once.
  std::string first() const;

  /// Takes what came before ttrpc off `bytes`. True once it begins: what is left belongs to it.
  bool consume(std::string_view& bytes);

  /// Why it failed for good, without text from the peer; empty while it may succeed.
  std::string_view failure() const { return failure_; }

 private:
  bool read_connected(std::string_view& bytes);

  Opening opening_;
  std::uint32_t port_;
  std::string_view failure_;
  ConnectAnswer connect_;
  LineScanner scanner_;
};

}  // namespace ka::guest
