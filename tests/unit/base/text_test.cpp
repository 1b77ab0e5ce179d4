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
