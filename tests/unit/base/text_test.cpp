// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include "tests/catch.hpp"

namespace ka::base {
namespace {

TEST_CASE("printable text is unchanged") {
  for (const char* text :
       {"", "qemu-system-x86", "CPU 0/KVM", "a\\b \"c\"", "Grüße", "容器", "🚀"}) {
    CAPTURE(text);
    CHECK(printable(text) == text);
    CHECK(is_printable(text));
  }
}

TEST_CASE("invisible characters are escaped") {
  struct Row {
    std::string_view raw;
    std::string_view shown;
  };
  const Row rows[] = {
      {"a\nb\r\t", "a\\x0ab\\x0d\\x09"},
      {"\x1b[31mred\x7f", "\\x1b[31mred\\x7f"},
      {std::string_view("\0", 1), "\\x00"},
      {"\xc2\x9b"
       "31m",
       "\\u{009b}31m"},
      {"\xd8\x9c", "\\u{061c}"},
      {"\xe2\x80\x8e\xe2\x80\x8f", "\\u{200e}\\u{200f}"},
      {"\xe2\x80\xa8\xe2\x80\xa9", "\\u{2028}\\u{2029}"},
      {"a\xe2\x80\xae"
       "b",
       "a\\u{202e}b"},
      {"\xe2\x81\xa6\xe2\x81\xa9", "\\u{2066}\\u{2069}"},
      {"\xef\xbb\xbf", "\\u{feff}"},
      {"\xf3\xa0\x81\x81", "\\u{e0041}"},
  };
  for (const auto& [raw, shown] : rows) {
    CHECK(printable(raw) == shown);
    CHECK_FALSE(is_printable(raw));
  }
}

/// A character below U+110000 that is not ASCII, as UTF-8.
std::string utf8(char32_t character) {
  const auto byte = [&](unsigned shift, unsigned mark) {
    return static_cast<char>(mark | ((character >> shift) & (mark == 0x80 ? 0x3fU : 0xffU)));
  };
  if (character < 0x800) return {byte(6, 0xc0), byte(0, 0x80)};
  if (character < 0x10000) return {byte(12, 0xe0), byte(6, 0x80), byte(0, 0x80)};
  return {byte(18, 0xf0), byte(12, 0x80), byte(6, 0x80), byte(0, 0x80)};
}

TEST_CASE("what Unicode shows nothing for, and noncharacters, are escaped; neighbours are not") {
  struct Row {
    char32_t first, last;
  };
  // DerivedCoreProperties.txt, Default_Ignorable_Code_Point, and PropList.txt,
  // Noncharacter_Code_Point, of Unicode 14.
  const Row rows[] = {
      {0xad, 0xad},       {0x34f, 0x34f},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
      {0x180b, 0x180f},   {0x3164, 0x3164},   {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},
      {0xffa0, 0xffa0},   {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0x1fffe, 0x1ffff},
      {0x8fffe, 0x8ffff}, {0xe0000, 0xe0fff},
  };
  for (const auto& [first, last] : rows) {
    CAPTURE(first);
    CHECK(is_printable(utf8(first - 1)) == (first != 0xe0000));  // U+DFFFF is none
    CHECK_FALSE(is_printable(utf8(first)));
    CHECK_FALSE(is_printable(utf8(last)));
    CHECK(is_printable(utf8(last + 1)));
  }
  CHECK(is_printable(utf8(0xffef)));
  for (char32_t c = 0xfff0; c <= 0xfffb; ++c) CHECK_FALSE(is_printable(utf8(c)));
  CHECK(is_printable(utf8(0xfffd)));
  CHECK(printable(utf8(0xfffe) + utf8(0xffff)) == "\\u{fffe}\\u{ffff}");
  CHECK(printable(utf8(0x10ffff)) == "\\u{10ffff}");
}

TEST_CASE("invalid UTF-8 is escaped byte by byte") {
  struct Row {
    std::string_view raw;
    std::string_view shown;
  };
  const Row rows[] = {
      {"a\xff\xfe", "a\\xff\\xfe"},
      {"\x80", "\\x80"},
      {"\xc3", "\\xc3"},                             // cut off
      {"\xc3(", "\\xc3("},                           // no second byte
      {"\xc0\xaf", "\\xc0\\xaf"},                    // overlong
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},           // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // above U+10FFFF
      {"\xf0\x82\x82\xac", "\\xf0\\x82\\x82\\xac"},  // overlong
  };
  for (const auto& [raw, shown] : rows) CHECK(printable(raw) == shown);
}

TEST_CASE("text is truncated between characters") {
  CHECK(printable(std::string(8, 'a'), 8) == "aaaaaaaa");
  CHECK(printable(std::string(9, 'a'), 8) == "aaaaa...");
  CHECK(printable("aaa\xc3\xbc\xc3\xbc\xc3\xbc", 8) == "aaa\xc3\xbc...");
  CHECK(printable("aaa\n\n", 8) == "aaa...");
  CHECK(printable("aaaa\n", 8) == "aaaa\\x0a");
  CHECK(printable(std::string(kMaxName + 1, 'n')).size() == kMaxName);
  CHECK(is_printable(std::string(kMaxName, 'n')));
  CHECK_FALSE(is_printable(std::string(kMaxName + 1, 'n')));
}

TEST_CASE("ids hold only what is safe in paths and requests") {
  CHECK(is_id(std::string(kMaxId, 'x')));
  for (const char* id : {"a", "0a.b_c-D", "..a"}) {
    CAPTURE(id);
    CHECK(is_id(id));
  }
  for (const char* id :
       {"", ".", "..", "a/b", "a b", "a\r\nDELETE", "a%2f", "\xc3\xbc", "a\\x0a"}) {
    CAPTURE(id);
    CHECK_FALSE(is_id(id));
  }
  CHECK_FALSE(is_id(std::string(kMaxId + 1, 'x')));
  CHECK_FALSE(is_id(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace ka::base
