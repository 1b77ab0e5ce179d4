// SPDX-License-Identifier: Apache-2.0
// NRI's mux: several byte streams (lanes) over one socket, without I/O (containerd/nri,
// pkg/net/multiplex/mux.go). A frame is a lane's id and a length, both big-endian, and the bytes.
// There is no handshake, and frames do not begin where messages do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ka::nri {

/// The runtime calls the plugin here.
inline constexpr std::uint32_t kPluginLane = 1;
/// The plugin calls the runtime here.
inline constexpr std::uint32_t kRuntimeLane = 2;

/// Longest payload that may be sent: Go's side reads through a buffer of this size and gives the
/// connection up for a frame that does not fit (ENOMEM in conn.Read).
inline constexpr std::size_t kMaxSent = 4096;
/// Longest payload that Go's side sends: a whole ttrpc frame (maxPayloadSize).
inline constexpr std::size_t kMaxReceived = 10 + (std::size_t{4} << 20);

/// The frames that carry `bytes` on a lane.
std::string mux(std::uint32_t lane, std::string_view bytes);

/// Takes the socket's bytes apart. It holds no payload: what arrived is handed on.
class Demux {
 public:
  using Sink = std::function<void(std::uint32_t lane, std::string_view bytes)>;

  /// Hands every piece of payload in `bytes` to `sink`. False when a frame is longer than any that
  /// the runtime sends: the stream is corrupt, and nothing of it is handed on.
  bool feed(std::string_view bytes, const Sink& sink);

 private:
  bool read_header();

  std::string header_;
  std::uint32_t lane_ = 0;
  std::size_t left_ = 0;  ///< payload bytes of this frame that are still to come
};

}  // namespace ka::nri
