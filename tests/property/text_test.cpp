// SPDX-License-Identifier: Apache-2.0
// printable() on bytes of every kind: what comes out can be shown, is bounded, and stays.
#include "base/text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "tests/property/property.hpp"

namespace ka::base {
namespace {

/// Bytes, more often than by chance those with which characters begin, go on and end.
rc::Gen<std::string> bytes() {
  const auto one = rc::gen::oneOf(
      rc::gen::arbitrary<char>(), rc::gen::inRange<char>(' ', '~'),
      rc::gen::element('\xc2', '\xe2', '\x80', '\xae', '\xf0', '\x9b', '\n', '\x1b', '\\', '"'));
  return rc::gen::container<std::string>(one);
}

TEST_CASE("any bytes become printable text within its limit") {
  property::holds("printable", [] {
    const std::string raw = *bytes();
    const auto limit = *rc::gen::inRange<std::size_t>(3, 64);
    const std::string text = printable(raw, limit);
    RC_ASSERT(text.size() <= limit);
    RC_ASSERT(is_printable(text, limit));
    RC_ASSERT(std::ranges::none_of(text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }));
  });
}

TEST_CASE("any bytes survive a JSON document") {
  property::holds("JSON", [] {
    const std::string text = printable(*bytes());
    boost::system::error_code error;
    const auto read = boost::json::parse(boost::json::serialize(boost::json::value(text)), error);
    RC_ASSERT(!error);
    RC_ASSERT(std::string_view(read.as_string()) == text);
  });
}

}  // namespace
}  // namespace ka::base
