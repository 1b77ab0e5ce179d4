// SPDX-License-Identifier: Apache-2.0
#include "base/ttrpc/frame.hpp"

#include <algorithm>

namespace ka::ttrpc {
namespace {

void put_u32(std::string& out, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((value >> shift) & 0xff);
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

Header read_header(std::string_view bytes) {
  return {get_u32(bytes), get_u32(bytes.substr(4)), static_cast<std::uint8_t>(bytes[8]),
          static_cast<std::uint8_t>(bytes[9])};
}

}  // namespace

std::string encode(std::uint32_t stream, std::uint8_t type, std::uint8_t flags,
                   std::string_view data) {
  std::string out;
  out.reserve(kHeaderSize + data.size());
  put_u32(out, static_cast<std::uint32_t>(data.size()));
  put_u32(out, stream);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  out += data;
  return out;
}

void Decoder::feed(std::string_view bytes) {
  // The part that was given out goes only now, so that many frames of one feed cost one move.
  buffer_.erase(0, used_);
  used_ = 0;
  // What is skipped need not be held: while there is any of it, the buffer is empty.
  const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, bytes.size()));
  skip_ -= skipped;
  buffer_ += bytes.substr(skipped);
}

void Decoder::skip_rest() {
  const auto here =
      static_cast<std::size_t>(std::min<std::uint64_t>(skip_, buffer_.size() - used_));
  used_ += here;
  skip_ -= here;
}

std::optional<Frame> Decoder::next() {
  const std::string_view rest = std::string_view(buffer_).substr(used_);
  if (rest.size() < kHeaderSize) return std::nullopt;
  Frame frame{read_header(rest), {}};
  if (frame.header.length > largest_) {
    used_ += kHeaderSize;
    skip_ = frame.header.length;
    skip_rest();
    return frame;
  }
  if (rest.size() - kHeaderSize < frame.header.length) return std::nullopt;
  frame.data = rest.substr(kHeaderSize, frame.header.length);
  used_ += kHeaderSize + frame.header.length;
  return frame;
}

}  // namespace ka::ttrpc
