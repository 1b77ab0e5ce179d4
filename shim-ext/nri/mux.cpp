// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/mux.hpp"

#include <algorithm>

namespace ka::nri {
namespace {

constexpr std::size_t kHeaderSize = 8;

void put_u32(std::string& out, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((value >> shift) & 0xff);
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace

std::string mux(std::uint32_t lane, std::string_view bytes) {
  std::string frames;
  while (!bytes.empty()) {
    const std::string_view payload = bytes.substr(0, kMaxSent);
    put_u32(frames, lane);
    put_u32(frames, static_cast<std::uint32_t>(payload.size()));
    frames += payload;
    bytes.remove_prefix(payload.size());
  }
  return frames;
}

bool Demux::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      const std::string_view part = bytes.substr(0, kHeaderSize - header_.size());
      header_ += part;
      bytes.remove_prefix(part.size());
      if (header_.size() == kHeaderSize && !read_header()) return false;
      continue;
    }
    const std::string_view payload = bytes.substr(0, left_);
    left_ -= payload.size();
    bytes.remove_prefix(payload.size());
    sink(lane_, payload);
  }
  return true;
}

bool Demux::read_header() {
  lane_ = get_u32(header_);
  left_ = get_u32(std::string_view(header_).substr(4));
  header_.clear();
  return left_ <= kMaxReceived;
}

}  // namespace ka::nri
