// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/topology.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/json/json.hpp"
#include "tests/catch.hpp"

using namespace ka;

namespace {

base::Result<policy::Topology> read(std::string_view text) {
  return documents::topology_from_json(*base::parse_json(text, "in"));
}

}  // namespace

TEST_CASE("a machine survives printing and reading back") {
  const auto made = policy::Topology::make(
      {{.cpu = 0, .core = 0, .socket = 0, .numa = 4, .l3 = 1, .kind = 1},
       {.cpu = 7, .core = 3, .socket = 1, .numa = 6, .l3 = 9, .isolated = true, .nohz_full = true},
       {.cpu = 9, .core = 4, .socket = 1, .numa = 6, .online = false}},
      {{10, 30, 40}, {30, 10, 50}, {40, 50, 10}}, {4, 6, 8});
  REQUIRE(made);
  const std::string text = boost::json::serialize(documents::to_json(*made));
  const auto again = read(text);
  REQUIRE(again);
  CHECK(*again == *made);
  CHECK(text.find(R"("nodes":[4,6,8])") != std::string::npos);
  CHECK(text.find(R"("online":false)") != std::string::npos);
}

TEST_CASE("the documented form is printed") {
  const auto made = policy::Topology::make({{.cpu = 0}, {.cpu = 1, .core = 1}});
  REQUIRE(made);
  CHECK(boost::json::serialize(documents::to_json(*made)) ==
        R"({"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0,"l3":0,"kind":0,"isolated":false},)"
        R"({"cpu":1,"core":1,"socket":0,"numa":0,"l3":0,"kind":0,"isolated":false}],)"
        R"("distances":[[10]]})");
}

TEST_CASE("without l3 a socket has one; without distances the defaults apply") {
  const auto made = read(R"({"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0},
                                     {"cpu":1,"core":1,"socket":1,"numa":3}]})");
  REQUIRE(made);
  CHECK(made->find(1)->l3 == 1);
  CHECK(made->distance(0, 3) == 20);
}

TEST_CASE("inconsistent machines are rejected with a path") {
  CHECK(read(R"({"cpus":[{"cpu":0,"core":0,"socket":0}]})").error().message ==
        "cpus[0].numa: missing");
  CHECK(read(R"({"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0,"smt":2}]})").error().message ==
        "cpus[0].smt: unknown key");
  CHECK(read(R"({"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0}],"distances":[[10],"x"]})")
            .error()
            .message == "distances[1]: must be an array of whole numbers");
  CHECK(read(R"({"cpus":[]})").error().message == "no CPU");
  CHECK(read(R"({})").error().message == "cpus: missing");
  CHECK(read("7").error().code == base::ErrorCode::kInvalid);
}
