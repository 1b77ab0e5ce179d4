// SPDX-License-Identifier: Apache-2.0
// ttrpc's frames, without I/O: bytes in, frames out, and back (containerd/ttrpc, PROTOCOL.md).
//
//   0..3  length of the data, big-endian     8  type
//   4..7  stream id, big-endian              9  flags
//
// Frames of unknown types pass like all others: their treatment is up to the user of the
// codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ka::ttrpc {

inline constexpr std::size_t kHeaderSize = 10;
/// The longest data of a frame (messageLengthMax in channel.go).
inline constexpr std::size_t kMaxData = std::size_t{4} << 20;

inline constexpr std::uint8_t kRequest = 1;
inline constexpr std::uint8_t kResponse = 2;
inline constexpr std::uint8_t kData = 3;

// Flags of requests and data; a unary call has none of them.
inline constexpr std::uint8_t kRemoteClosed = 1;
inline constexpr std::uint8_t kRemoteOpen = 2;
inline constexpr std::uint8_t kNoData = 4;

struct Header {
  std::uint32_t length = 0;
  std::uint32_t stream = 0;
  std::uint8_t type = 0;
  std::uint8_t flags = 0;

  bool operator==(const Header&) const = default;
  bool oversized() const { return length > kMaxData; }
};

struct Frame {
  Header header;
  /// `header.length` bytes; empty when the frame is larger than its decoder takes.
  std::string data;

  bool operator==(const Frame&) const = default;
  /// True when there was data that was not kept.
  bool skipped() const { return data.size() != header.length; }
};

/// The bytes of one frame. Precondition: at most kMaxData of data.
std::string encode(std::uint32_t stream, std::uint8_t type, std::uint8_t flags,
                   std::string_view data);

/// Cuts a stream of bytes, which may arrive in pieces of any size, into frames. It never holds more
/// than one frame and what was fed last, and it allocates for what arrived, not for what a header
/// promises.
class Decoder {
 public:
  /// `largest`: the longest data of a frame to be kept, at most kMaxData.
  explicit Decoder(std::size_t largest = kMaxData) : largest_(largest) {}

  void feed(std::string_view bytes);
  /// The next whole frame; absent until more bytes are fed. A frame with more than `largest` of
  /// data is skipped as its bytes arrive, and given out as a header at once: its sender may be owed
  /// an answer, and the stream goes on behind it.
  std::optional<Frame> next();
  /// True between two frames: a stream that ends here was not cut off.
  bool idle() const { return buffer_.size() == used_ && skip_ == 0; }

 private:
  void skip_rest();

  std::size_t largest_;
  std::string buffer_;
  std::size_t used_ = 0;    ///< bytes of buffer_ that were given out
  std::uint64_t skip_ = 0;  ///< bytes of a skipped frame that are still to come
};

}  // namespace ka::ttrpc
