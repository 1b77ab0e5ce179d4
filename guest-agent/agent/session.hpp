// SPDX-License-Identifier: Apache-2.0
// One connection of a host: bytes in, answers out. It knows no sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ttrpc/envelope.hpp"
#include "base/ttrpc/frame.hpp"
#include "guest-agent/agent/agent.hpp"
#include "guest-agent/protocol/limits.hpp"

namespace ka::agent {

class Session {
 public:
  /// `agent` must outlive it.
  explicit Session(Agent& agent) : agent_(agent) {}

  /// False: the peer does not speak the protocol; close the connection after `out` is written.
  /// Answers are appended to `out`.
  bool receive(std::string_view bytes, std::string& out);

  /// The handshake is done.
  bool greeted() const { return greeted_; }

  /// Something may be new: answers a host that waits for it.
  void notify(std::string& out);

 private:
  bool handle(const ttrpc::Frame& frame, std::string& out);
  bool hello(std::uint32_t stream, std::string_view payload, std::string& out);
  bool apply(std::uint32_t stream, std::string_view payload, std::string& out);
  bool watch(std::uint32_t stream, std::string_view payload, std::string& out);
  bool container(std::uint32_t stream, std::string_view payload, std::string& out);
  bool measure(std::uint32_t stream, std::string_view payload, std::string& out);
  void notify_measured(std::string& out);

  Agent& agent_;
  ttrpc::Decoder decoder_{guest::kMaxMessage};
  bool greeted_ = false;
  std::uint32_t last_stream_ = 0;
  std::uint32_t watching_ = 0;  ///< stream of the call that waits; 0: none
  std::uint64_t known_ = 0;     ///< generation that the waiting host has
  /// Stream of the call that waits for a measurement (0: none), and its number.
  std::uint32_t measuring_ = 0;
  std::uint64_t measurement_ = 0;
};

}  // namespace ka::agent
