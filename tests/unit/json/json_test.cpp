// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.hpp"

#include <boost/json/value.hpp>

#include "tests/catch.hpp"

using namespace ka::base;

namespace {

std::string parse_error(std::string_view text) {
  const auto parsed = parse_json(text, "in.json");
  return parsed ? "" : parsed.error().message;
}

/// What a reader that knows "n", "s", "cpus" and "list" complains about.
std::string error_in(std::string_view text) {
  InputError input_error;
  const auto document = parse_json(text, "in.json");
  REQUIRE(document);
  Fields fields(*document, "top[3]", input_error);
  int number = 0;
  std::string string;
  ka::policy::CpuSet cpus;
  std::vector<std::string> list;
  fields.require({"n"});
  fields.read("n", number);
  fields.read("s", string);
  fields.read("cpus", cpus);
  fields.read("list", list);
  fields.finish();
  return input_error.empty() ? "" : input_error.error().message;
}

}  // namespace

TEST_CASE("malformed JSON is reported with line and column") {
  CHECK(parse_error("{\"a\": 1}\n") == "");
  CHECK(parse_error("{\"a\": 1,\n  b}").starts_with("in.json:2:3: not JSON"));
  CHECK(parse_error("{\"a\": 1} x").starts_with("in.json:1:10: not JSON"));
  CHECK(parse_error("").starts_with("in.json:1:1: not JSON"));
  CHECK(parse_error("[1,").starts_with("in.json:1:4: not JSON"));
  CHECK(parse_error(std::string(100000, '[')).find("too deep") != std::string::npos);
}

TEST_CASE("a duplicate key is rejected at its position") {
  CHECK(parse_error("{\"cpus\": \"0\",\n \"cpus\": \"1\"}") ==
        "in.json:2:7: \"cpus\" is a duplicate key");
  CHECK(parse_error(R"([{"a":{"b":1,"\u0062":2}}])").find("\"b\" is a duplicate") !=
        std::string::npos);
  CHECK(parse_error(R"([{"a":1},{"a":2,"b":{"a":3}}])") == "");
}

TEST_CASE("a number that no double holds is rejected at its position") {
  CHECK(parse_error("{\"a\": 1,\n \"b\": 1e400}").starts_with("in.json:2:"));
  CHECK(parse_error("[1e400]").ends_with(": a number is out of range"));
  CHECK(parse_error("[-484.9900e229330, 1]").ends_with(": a number is out of range"));
  CHECK(parse_error("[1e400000000000]").find("exponent overflow") != std::string::npos);
  CHECK(parse_error("[1e308, 1e-400, 18446744073709551616]") == "");
}

TEST_CASE("the first error is reported with its path") {
  CHECK(error_in(R"({"n":1,"s":"x","cpus":"0-3","list":["a"]})") == "");
  CHECK(error_in(R"({"n":1,"cpuz":1})") == "top[3].cpuz: unknown key");
  CHECK(error_in(R"({"s":"x"})") == "top[3].n: missing");
  CHECK(error_in(R"({"n":-1})") == "top[3].n: must be a whole number, 0 or more");
  CHECK(error_in(R"({"n":1.5})") == "top[3].n: must be a whole number, 0 or more");
  CHECK(error_in(R"({"n":4294967296})") == "top[3].n: must be a whole number, 0 or more");
  CHECK(error_in(R"({"n":"1"})") == "top[3].n: must be a whole number, 0 or more");
  CHECK(error_in(R"({"n":1,"s":2})") == "top[3].s: must be a string");
  CHECK(error_in(R"({"n":1,"cpus":"0-"})") ==
        "top[3].cpus: \"0-\": expected a number (position 2)");
  CHECK(error_in(R"({"n":1,"list":["a",7]})") == "top[3].list[1]: must be a string");
  CHECK(error_in(R"({"n":1,"list":"a"})") == "top[3].list: must be an array");
  CHECK(error_in("[]") == "top[3]: must be an object");
}

TEST_CASE("text with control characters is rejected, and escaped in the error") {
  CHECK(error_in(R"({"n":1,"s":"a\u001bb"})") == "top[3].s: has control characters");
  CHECK(error_in(R"({"n":1,"s":"\u009b31m"})") == "top[3].s: has control characters");
  CHECK(error_in(R"({"n":1,"s":"\u202etxt"})") == "top[3].s: has control characters");
  CHECK(error_in(R"({"n":1,"list":["a","b\n"]})") == "top[3].list[1]: has control characters");
  CHECK(error_in(R"({"n":1,"\u001b[2J":2})") == "top[3].\\x1b[2J: unknown key");
  CHECK(error_in(R"({"n":1,"cpus":"0\n"})") == "top[3].cpus: has control characters");
  CHECK(parse_error(R"({"\u202e":1,"\u202e":1})").find(R"("\u{202e}" is a duplicate)") !=
        std::string::npos);
}

TEST_CASE("depth has a limit") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(parse_error(nested(kMaxJsonDepth)) == "");
  CHECK(parse_error(nested(kMaxJsonDepth + 1)).find("too deep") != std::string::npos);
}

TEST_CASE("an error is a sentence of bounded length") {
  const InputError wrong = [] {
    InputError error;
    error.add("", std::string(kMaxSentence, 'x'));
    return error;
  }();
  CHECK(wrong.error().message == std::string(kMaxSentence, 'x'));
  InputError longer;
  longer.add("", std::string(kMaxSentence + 1, 'x'));
  CHECK(longer.error().message.size() <= kMaxSentence);
  CHECK(longer.error().message.ends_with("..."));
}

TEST_CASE("text has a maximum length") {
  const std::string longest(4096, 'x');
  CHECK(error_in(R"({"n":1,"s":")" + longest + "\"}") == "");
  CHECK(error_in(R"({"n":1,"s":")" + longest + "x\"}") == "top[3].s: is longer than 4096 bytes");
}
