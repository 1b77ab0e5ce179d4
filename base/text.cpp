// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace ka::base {
namespace {

constexpr std::string_view kCut = "...";

bool is_plain(char c) { return c >= ' ' && c <= '~'; }

struct Range {
  char32_t first;
  char32_t last;
};

/// Beyond ASCII: C1 controls, line and paragraph separators, interlinear annotations; what a font
/// shows nothing for (Default_Ignorable_Code_Point of Unicode 14, DerivedCoreProperties.txt),
/// and directional marks, which are among that. Ascending, adjacent ranges are one.
constexpr std::array kHidden{
    Range{0x80, 0x9f},       Range{0xad, 0xad},      Range{0x34f, 0x34f},   Range{0x61c, 0x61c},
    Range{0x115f, 0x1160},   Range{0x17b4, 0x17b5},  Range{0x180b, 0x180f}, Range{0x200b, 0x200f},
    Range{0x2028, 0x202e},   Range{0x2060, 0x206f},  Range{0x3164, 0x3164}, Range{0xfe00, 0xfe0f},
    Range{0xfeff, 0xfeff},   Range{0xffa0, 0xffa0},  Range{0xfff0, 0xfffb}, Range{0x1bca0, 0x1bca3},
    Range{0x1d173, 0x1d17a}, Range{0xe0000, 0xe0fff}};

/// Noncharacter_Code_Point (PropList.txt): of no use between programs, and two of them not allowed
/// in XML.
bool is_noncharacter(char32_t character) {
  return (character & 0xfffe) == 0xfffe || (character >= 0xfdd0 && character <= 0xfdef);
}

bool is_hidden(char32_t character) {
  return is_noncharacter(character) ||
         std::ranges::any_of(kHidden, [character](const Range& range) {
           return character >= range.first && character <= range.last;
         });
}

/// The first character of a text; `size` 0: its first byte is no UTF-8 (RFC 3629).
struct Character {
  char32_t value = 0;
  std::size_t size = 0;
};

/// How many bytes a character has that begins with this one; 0: none begins so.
std::size_t size_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = size_of(first);
  if (size == 0 || size > text.size()) return {};
  char32_t value = size == 1 ? first : first & (0x7fU >> size);
  for (const char c : text.substr(1, size - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) != 0x80U) return {};
    value = value << 6 | (byte & 0x3fU);
  }
  const bool overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (overlong || surrogate || value > 0x10ffff) return {};
  return {value, size};
}

std::string hex(std::uint32_t value, std::size_t digits) {
  std::array<char, 8> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, 16).ptr;
  std::string out(text.data(), end);
  if (out.size() < digits) out.insert(0, digits - out.size(), '0');
  return out;
}

/// The first character as it is shown; takes it from `text`.
std::string next_shown(std::string_view& text) {
  const Character character = first_character(text);
  const std::string_view bytes = text.substr(0, std::max<std::size_t>(character.size, 1));
  text.remove_prefix(bytes.size());
  if (character.size == 0 || (character.size == 1 && !is_plain(bytes[0]))) {
    return "\\x" + hex(static_cast<unsigned char>(bytes[0]), 2);
  }
  if (is_hidden(character.value)) return "\\u{" + hex(character.value, 4) + '}';
  return std::string(bytes);
}

}  // namespace

std::string printable(std::string_view raw, std::size_t limit) {
  // By far most names are of this kind, and every scan of a VMM reads one per thread.
  if (raw.size() <= limit && std::ranges::all_of(raw, is_plain)) return std::string(raw);
  std::string text;
  std::size_t whole = 0;  ///< of `text`, what leaves room for kCut
  while (!raw.empty()) {
    const std::string shown = next_shown(raw);
    if (text.size() + shown.size() > limit) return text.substr(0, whole).append(kCut);
    text += shown;
    if (text.size() + kCut.size() <= limit) whole = text.size();
  }
  return text;
}

bool is_printable(std::string_view text, std::size_t limit) {
  return printable(text, limit) == text;
}

bool is_id(std::string_view text) {
  const auto good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxId && text != "." && text != ".." &&
         std::ranges::all_of(text, good);
}

}  // namespace ka::base
