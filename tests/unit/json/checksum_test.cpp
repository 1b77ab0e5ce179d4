// SPDX-License-Identifier: Apache-2.0
#include "base/json/checksum.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/json/json.hpp"
#include "tests/catch.hpp"

using namespace ka;

namespace {

std::string checked(const std::string& text) {
  const auto document = base::parse_json(text, "test");
  if (!document) return "no JSON";
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  base::check_checksum(fields, text);
  return errors.empty() ? "" : errors.error().message;
}

}  // namespace

TEST_CASE("a document is followed by its CRC-32") {
  CHECK(base::with_checksum({{"a", 6}}) == "{\"a\":6,\"checksum\":\"0963013069\"}\n");
  CHECK(base::with_checksum({{"a", 1}}) == "{\"a\":1,\"checksum\":\"2801990766\"}\n");
}

TEST_CASE("a checksum is that of all that precedes it, and of nothing else") {
  const std::string good = base::with_checksum({{"cpus", "2-3"}, {"name", ",\"checksum\":\"1\"}"}});
  CHECK(checked(good).empty());
  CHECK(checked("{\"cpus\":\"2-3\"}\n").empty());
  const std::string wrong = "checksum: not that of the content";
  std::string other = good;
  other[other.find('3')] = '2';
  CHECK(checked(other) == wrong);
  CHECK(checked(good + " ") == wrong);
  CHECK(checked(R"({"a":1,"checksum":2801990766})") == wrong);
  CHECK(checked(R"({"checksum":0})") == wrong);
  CHECK(checked(R"({"checksum":"","a":{"a":1,"checksum":0}})") == wrong);
}
