// SPDX-License-Identifier: Apache-2.0
#include "base/json/lookup.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

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

TEST_CASE("text read by pointer is printable and bounded, a value's own text is as it is") {
  const json::value value = json::parse(R"({"t":"a\u001bb"})");
  CHECK(base::text_at(value, "/t") == "a\\x1bb");
  CHECK(base::text_in(base::member(value, "t")) ==
        "a\x1b"
        "b");
  const json::value longer{{"t", std::string(100, 'x')}};
  CHECK(base::text_at(longer, "/t", 10).size() == 10);
}
