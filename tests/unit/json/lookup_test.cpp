// SPDX-License-Identifier: Apache-2.0
#include "base/json/lookup.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/json/json.hpp"
#include "tests/catch.hpp"

using namespace ka;
namespace json = boost::json;

TEST_CASE("what a document has is read by pointer or by name") {
  const json::value value = json::parse(
      R"({"a":{"b":[1,{"c/d":"text"}]},"n":-3,"big":18446744073709551615,"whole":4.0,"half":0.5})");
  CHECK(base::number_at(value, "/a/b/0") == 1);
  CHECK(base::text_at(value, "/a/b/1/c~1d") == "text");
  CHECK(base::elements_at(value, "/a/b").size() == 2);
  CHECK(base::text_in(base::member(base::value_at(value, "/a/b/1"), "c/d")) == "text");
  CHECK(base::number_at(value, "/n") == -3);
  CHECK(base::number_at(value, "/whole") == 4);
  CHECK(base::find_at(value, "/a") != nullptr);
}

TEST_CASE("what is absent, or of another type, reads as nothing") {
  const json::value value =
      json::parse(R"({"t":"x","o":{},"l":[],"big":18446744073709551615,"half":0.5,"z":null})");
  for (const char* pointer : {"/none", "/t/deeper", "/l/0", "/l/-", "no pointer", "/~2", "//"}) {
    CAPTURE(pointer);
    CHECK(base::find_at(value, pointer) == nullptr);
    CHECK(base::value_at(value, pointer).is_null());
    CHECK(base::text_at(value, pointer).empty());
    CHECK(base::number_at(value, pointer, 7) == 7);
    CHECK(base::elements_at(value, pointer).empty());
  }
  CHECK(base::text_at(value, "/o").empty());
  CHECK(base::number_at(value, "/t", 7) == 7);
  CHECK(base::number_at(value, "/big", 7) == 7);
  CHECK(base::number_at(value, "/half", 7) == 7);
  CHECK(base::number_at(value, "/z", 7) == 7);
  CHECK(base::elements_at(value, "/o").empty());
  CHECK(base::member(base::member(value, "t"), "x").is_null());
  CHECK(base::member(json::value(), "x").is_null());
}

TEST_CASE("what decides is an error where it has another type") {
  const json::value value = json::parse(
      R"({"cpus":"1-2\n","mems":null,"quota":4,"bad":{"list":7,"count":"4","half":0.5}})");
  base::InputError wrong;
  CHECK(base::strict_text_at(value, "/cpus", wrong) == "1-2\n");
  CHECK(base::strict_text_at(value, "/mems", wrong).empty());
  CHECK(base::strict_text_at(value, "/none/deeper", wrong).empty());
  CHECK(base::strict_number_at(value, "/quota", wrong) == 4);
  CHECK(base::strict_number_at(value, "/mems", wrong, 5) == 5);
  CHECK(base::strict_number_at(value, "/none", wrong, 5) == 5);
  CHECK(wrong.empty());
  base::InputError list;
  CHECK(base::strict_text_at(value, "/bad/list", list).empty());
  CHECK(list.error().message == "/bad/list: must be a string");
  for (const char* pointer : {"/bad/count", "/bad/half"}) {
    base::InputError number;
    CHECK(base::strict_number_at(value, pointer, number, 5) == 5);
    CHECK(number.error().message == std::string(pointer) + ": must be a whole number");
  }
}

TEST_CASE("text read by pointer is printable and bounded, a value's own text is as it is") {
  const json::value value = json::parse(R"({"t":"a\u001bb"})");
  CHECK(base::text_at(value, "/t") == "a\\x1bb");
  CHECK(base::text_in(base::member(value, "t")) ==
        "a\x1b"
        "b");
  const json::value longer{{"t", std::string(100, 'x')}};
  CHECK(base::text_at(longer, "/t", 10).size() == 10);
}
