// SPDX-License-Identifier: Apache-2.0
// Frames of an HTTP/2 server, written by hand (RFC 9113, RFC 7541): what a scripted gRPC server
// sends, right or wrong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/grpc/framing.hpp"

namespace ka::tests {

enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoaway = 7,
  kContinuation = 9
};

inline constexpr std::uint8_t kEndStream = 1;
inline constexpr std::uint8_t kEndHeaders = 4;

inline std::string http2_frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                               std::string_view payload) {
  const auto size = static_cast<std::uint32_t>(payload.size());
  std::string frame;
  for (const std::uint32_t byte : {size >> 16, size >> 8, size}) frame += static_cast<char>(byte);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const std::uint32_t byte : {stream >> 24, stream >> 16, stream >> 8, stream}) {
    frame += static_cast<char>(byte);
  }
  return frame.append(payload);
}

using HeaderList = std::vector<std::pair<std::string, std::string>>;

/// Literals without indexing; names and values of less than 127 bytes.
inline std::string hpack(const HeaderList& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    block += '\0';
    block += static_cast<char>(name.size());
    block += name;
    block += static_cast<char>(value.size());
    block += value;
  }
  return block;
}

inline std::string settings_frame() { return http2_frame(FrameType::kSettings, 0, 0, {}); }

inline std::string headers_frame(const HeaderList& fields, std::uint8_t flags = kEndHeaders) {
  return http2_frame(FrameType::kHeaders, flags, 1, hpack(fields));
}

/// Data frames have 16 KiB at most.
inline std::string data_frames(std::string_view body) {
  constexpr std::size_t kLargest = 16384;
  std::string frames;
  for (; !body.empty(); body.remove_prefix(std::min(kLargest, body.size()))) {
    frames += http2_frame(FrameType::kData, 0, 1, body.substr(0, kLargest));
  }
  return frames;
}

inline std::string trailers(const std::string& status, const std::string& message = {}) {
  return headers_frame({{"grpc-status", status}, {"grpc-message", message}},
                       kEndHeaders | kEndStream);
}

inline std::string response_head() {
  return settings_frame() +
         headers_frame({{":status", "200"}, {"content-type", "application/grpc"}});
}

/// A whole response with one message.
inline std::string grpc_response(std::string_view message) {
  return response_head() + data_frames(grpc::frame(message)) + trailers("0");
}

/// A call that the server refused.
inline std::string grpc_refusal(const std::string& status, const std::string& message) {
  return settings_frame() + headers_frame({{":status", "200"},
                                           {"content-type", "application/grpc"},
                                           {"grpc-status", status},
                                           {"grpc-message", message}},
                                          kEndHeaders | kEndStream);
}

}  // namespace ka::tests
