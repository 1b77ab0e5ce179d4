// SPDX-License-Identifier: Apache-2.0
#include "base/grpc/framing.hpp"

#include <charconv>
#include <cstdint>

#include "base/text.hpp"

namespace ka::grpc {
namespace {

using base::ErrorCode;
using base::fail;

constexpr int kByteBits = 8;
constexpr std::size_t kEscape = 3;  ///< "%41"

std::uint32_t read_length(std::string_view prefix) {
  std::uint32_t length = 0;
  for (const char c : prefix.substr(1)) {
    length = length << kByteBits | static_cast<unsigned char>(c);
  }
  return length;
}

}  // namespace

std::string frame(std::string_view message) {
  std::string framed(1, '\0');
  const auto length = static_cast<std::uint32_t>(message.size());
  for (int shift = 3 * kByteBits; shift >= 0; shift -= kByteBits) {
    framed += static_cast<char>(length >> shift);
  }
  return framed.append(message);
}

base::Result<std::string> unframe(std::string body) {
  if (body.size() < kPrefixSize) return fail(ErrorCode::kInvalid, "the response has no message");
  if (body.front() != 0) return fail(ErrorCode::kInvalid, "the message is compressed");
  if (read_length(std::string_view(body).substr(0, kPrefixSize)) != body.size() - kPrefixSize) {
    return fail(ErrorCode::kInvalid, "the response is not one whole message");
  }
  body.erase(0, kPrefixSize);
  return body;
}

std::string decode_status_message(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    unsigned char byte = 0;
    const bool escaped = text.size() >= kEscape && text.front() == '%' &&
                         std::from_chars(text.data() + 1, text.data() + kEscape, byte, 16).ptr ==
                             text.data() + kEscape;
    decoded += escaped ? static_cast<char>(byte) : text.front();
    text.remove_prefix(escaped ? kEscape : 1);
  }
  return base::printable(decoded, base::kMaxSentence);
}

}  // namespace ka::grpc
