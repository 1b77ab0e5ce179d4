// SPDX-License-Identifier: Apache-2.0
#include "base/ttrpc/wire.hpp"

#include <limits>

namespace ka::ttrpc {
namespace {

constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kBytes = 2;
constexpr std::uint32_t kFixed32 = 5;

/// Takes a varint off `rest`: at most ten bytes, of the tenth only one bit.
std::optional<std::uint64_t> read_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(rest.front());
    rest.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return std::nullopt;
}

bool skip(std::string_view& rest, std::uint64_t size) {
  if (size > rest.size()) return false;
  rest.remove_prefix(static_cast<std::size_t>(size));
  return true;
}

}  // namespace

std::optional<Field> Reader::fail() {
  good_ = false;
  rest_ = {};
  return std::nullopt;
}

std::optional<Field> Reader::next() {
  while (!rest_.empty()) {
    const auto key = read_varint(rest_);
    if (!key || *key >> 3 == 0 || *key > std::numeric_limits<std::uint32_t>::max()) return fail();
    Field field{.number = static_cast<std::uint32_t>(*key >> 3)};
    const auto type = static_cast<std::uint32_t>(*key & 7);
    if (type == kFixed64 || type == kFixed32) {
      if (!skip(rest_, type == kFixed64 ? 8 : 4)) return fail();
      continue;
    }
    if (type != kVarint && type != kBytes) return fail();
    const auto value = read_varint(rest_);
    if (!value) return fail();
    field.value = *value;
    if (type == kVarint) return field;
    field.is_bytes = true;
    field.bytes = rest_.substr(0, static_cast<std::size_t>(*value));
    if (!skip(rest_, *value)) return fail();
    return field;
  }
  return std::nullopt;
}

void Writer::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out_ += static_cast<char>((value & 0x7f) | 0x80);
  out_ += static_cast<char>(value);
}

void Writer::present(std::uint32_t field, std::uint64_t value) {
  varint(std::uint64_t{field} << 3 | kVarint);
  varint(value);
}

void Writer::message(std::uint32_t field, std::string_view bytes) {
  varint(std::uint64_t{field} << 3 | kBytes);
  varint(bytes.size());
  out_ += bytes;
}

std::optional<std::uint64_t> PackedReader::next() {
  if (rest_.empty()) return std::nullopt;
  const auto value = read_varint(rest_);
  if (!value) {
    good_ = false;
    rest_ = {};
  }
  return value;
}

}  // namespace ka::ttrpc
