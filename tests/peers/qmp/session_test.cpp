// SPDX-License-Identifier: Apache-2.0
#include "vmm/qmp/session.hpp"

#include <boost/json/object.hpp>

#include "tests/catch.hpp"

using namespace ka;
using namespace ka::qmp;

namespace {

const std::string kGreeting =
    R"({"QMP": {"version": {"qemu": {"micro": 1, "minor": 0, "major": 11}}}})";
const std::string kNegotiated = R"({"return": {}, "id": "qmp_capabilities"})";

void make_ready(Session& session) {
  REQUIRE(session.feed(kGreeting));
  REQUIRE(session.feed(kNegotiated));
  REQUIRE(session.ready());
}

}  // namespace

TEST_CASE("a session greets, negotiates, queries and gets responses") {
  Session session;
  auto received = session.feed(kGreeting);
  REQUIRE(received);
  CHECK(received->to_send == "{\"execute\":\"qmp_capabilities\",\"id\":\"qmp_capabilities\"}\r\n");
  CHECK(received->news.empty());
  CHECK_FALSE(session.ready());
  received = session.feed(kNegotiated);
  REQUIRE(received);
  CHECK(session.ready());
  CHECK(std::get<Ready>(received->news.at(0)).version == "11.0.1");

  const Session::Command first = session.command("a");
  const Session::Command second = session.command("b");
  CHECK(first.id != second.id);
  received = session.feed(R"({"return": 2, "id": ")" + second.id + R"("}{"event": "STOP"})" +
                          R"({"error": {"class": "C", "desc": "d"}, "id": ")" + first.id + "\"}");
  REQUIRE(received);
  REQUIRE(received->news.size() == 3);
  CHECK(std::get<Answer>(received->news[0]).id == second.id);
  CHECK(std::get<Answer>(received->news[0]).result->as_int64() == 2);
  CHECK(std::get<Event>(received->news[1]).name == "STOP");
  CHECK(std::get<Answer>(received->news[2]).result.error().message == "C: d");
}

TEST_CASE("events may come at any time after the greeting") {
  Session session;
  REQUIRE(session.feed(kGreeting));
  CHECK(session.feed(R"({"event": "STOP"})")->news.size() == 1);
  CHECK(session.feed(kNegotiated)->news.size() == 1);
}

TEST_CASE("a server out of step ends the session") {
  Session session;
  SECTION("no response before the greeting") { CHECK_FALSE(session.feed(kNegotiated)); }
  SECTION("no event before the greeting") { CHECK_FALSE(session.feed(R"({"event": "A"})")); }
  SECTION("only one greeting") {
    REQUIRE(session.feed(kGreeting));
    CHECK_FALSE(session.feed(kGreeting));
  }
  SECTION("no other response before the negotiation's") {
    REQUIRE(session.feed(kGreeting));
    CHECK_FALSE(session.feed(R"({"return": {}, "id": "1"})"));
  }
  SECTION("the negotiation is not rejected") {
    REQUIRE(session.feed(kGreeting));
    CHECK_FALSE(session.feed(R"({"error": {"class": "A", "desc": ""}, "id": "qmp_capabilities"})"));
  }
  SECTION("no unsolicited response, and no second one") {
    make_ready(session);
    const std::string answer = R"({"return": {}, "id": ")" + session.command("a").id + "\"}";
    CHECK(session.feed(answer));
    CHECK_FALSE(session.feed(answer));
  }
}
