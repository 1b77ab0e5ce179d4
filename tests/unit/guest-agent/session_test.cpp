// SPDX-License-Identifier: Apache-2.0
// The two ends of the protocol against each other, and each against one that lies.
#include "guest-agent/agent/session.hpp"

#include "base/ttrpc/envelope.hpp"
#include "guest-agent/host/session.hpp"
#include "tests/catch.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"

using namespace ka;
using guest::News;
using guest::Opening;
using tests::GuestScene;
using tests::spec_of;

namespace {

const std::string kId(64, 'a');

/// A host that said hello and has an Apply and a watch under way: streams 1, 3 and 5.
struct Host {
  explicit Host(Opening opening = Opening::kNone) : session(opening) { out = session.start(); }

  bool receive(std::string_view bytes) { return session.receive(bytes, news, out); }
  bool answer(std::uint32_t stream, std::string_view payload) {
    return receive(
        ttrpc::write_answer(stream, {.code = ttrpc::Code::kOk, .message = {}, .payload = payload}));
  }
  void greet() {
    REQUIRE(answer(1, guest::encode(guest::Hello{.program = "agent"})));
    session.apply(spec_of(2, {1}, kId), out);
    session.watch(out);
  }

  guest::Session session;
  std::vector<News> news;
  std::string out;
};

policy::GuestReport good_report() {
  policy::GuestReport report;
  report.generation = 1;
  report.cpus = {{.number = 0, .hardware_id = 0, .online = true},
                 {.number = 1, .hardware_id = 1, .online = true}};
  report.common = {0};
  report.containers = {{.id = kId, .wanted = {1}, .actual = {1}}};
  return report;
}

std::string call(std::uint32_t stream, std::string_view method, std::string_view payload) {
  return ttrpc::write_call(stream,
                           {.service = guest::kService, .method = method, .payload = payload});
}

}  // namespace

TEST_CASE("host and agent place a container, and the agent reports the next one") {
  GuestScene scene;
  scene.cpus({0, 1});
  scene.cgroup("pods/" + kId);
  agent::Agent agent(scene.roots(), scene.threads);
  agent::Session there(agent);
  Host host;
  const auto exchange = [&] {
    while (!host.out.empty()) {
      std::string back;
      REQUIRE(there.receive(std::exchange(host.out, {}), back));
      REQUIRE(host.receive(back));
    }
  };
  exchange();
  REQUIRE(host.session.ready());
  host.session.apply(spec_of(2, {1}, kId), host.out);
  CHECK(host.session.is_owed());
  exchange();
  REQUIRE(host.news.size() == 1);
  CHECK(host.news[0].answers_spec);
  CHECK(host.news[0].report.containers[0].wanted == policy::GuestCpuSet{1});
  host.session.watch(host.out);
  exchange();
  CHECK_FALSE(host.session.is_owed());
  scene.cpus({0, 1, 2});
  agent.cpus_changed();
  std::string back;
  there.notify(back);
  REQUIRE(host.receive(back));
  CHECK(host.news.back().report.cpus.size() == 3);
}

TEST_CASE("only the last request counts") {
  Host host;
  host.greet();
  host.session.apply(spec_of(2, {0}, kId), host.out);
  host.session.apply(spec_of(2, {0, 1}, kId), host.out);
  host.out.clear();
  REQUIRE(host.answer(3, guest::encode(good_report())));
  CHECK_FALSE(host.news[0].answers_spec);
  ttrpc::Decoder sent;
  sent.feed(host.out);
  const auto frame = sent.next();
  REQUIRE(frame);
  const auto spec = guest::decode_spec(ttrpc::read_call(frame->data)->payload);
  CHECK(spec->containers[0].hardware_ids.size() == 2);
  CHECK_FALSE(sent.next());
}

TEST_CASE("a lying guest loses only its own connection") {
  Host host;
  host.greet();
  auto report = good_report();
  SECTION("a container of another guest") { report.containers[0].id = "other"; }
  SECTION("CPUs that it does not have") { report.containers[0].actual = {1, 2}; }
  SECTION("common CPUs that it does not have") { report.common = {7}; }
  SECTION("a process on impossible CPUs") {
    report.containers[0].processes = {{.pid = 1, .name = "x", .threads = 1, .cpus = {900}}};
  }
  SECTION("one CPU twice") { report.cpus[1].hardware_id = 0; }
  CHECK_FALSE(host.answer(3, guest::encode(report)));
  CHECK(host.news.empty());
  CHECK_FALSE(host.session.failure().empty());
  CHECK_FALSE(host.answer(5, guest::encode(good_report())));
}

TEST_CASE("unsolicited messages cost a guest only its own connection") {
  Host host;
  host.greet();
  SECTION("a response without a request") { CHECK_FALSE(host.answer(7, {})); }
  SECTION("a second response") {
    CHECK(host.answer(3, guest::encode(good_report())));
    CHECK_FALSE(host.answer(3, guest::encode(good_report())));
  }
  SECTION("a request") { CHECK_FALSE(host.receive(call(9, "Apply", {}))); }
  SECTION("more than allowed") {
    CHECK_FALSE(host.receive(std::string("\x00\x10\x00\x00\x00\x00\x00\x03\x02\x00", 10)));
  }
  SECTION("an invalid response") {
    CHECK_FALSE(host.receive(ttrpc::encode(3, ttrpc::kResponse, 0, "\xff")));
  }
  SECTION("an error response") {
    CHECK_FALSE(host.receive(ttrpc::write_answer(
        3, {.code = ttrpc::Code::kUnimplemented, .message = "\x1b[2J", .payload = {}})));
    CHECK(host.session.failure().find('\x1b') == std::string::npos);
  }
}

TEST_CASE("an incomplete response does not extend the deadline") {
  Host host;
  host.greet();
  REQUIRE(host.answer(3, guest::encode(good_report())));
  CHECK_FALSE(host.session.is_owed());
  const std::string whole = ttrpc::write_answer(
      5, {.code = ttrpc::Code::kOk, .message = {}, .payload = guest::encode(good_report())});
  CHECK(host.receive(std::string_view(whole).substr(0, 11)));
  CHECK(host.session.is_owed());
}

TEST_CASE("versions without overlap are an error that names both") {
  Host host;
  CHECK_FALSE(
      host.answer(1, guest::encode(guest::Hello{.version = 9, .oldest = 5, .program = {}})));
  CHECK(host.session.failure() ==
        "the agent speaks versions 5-9 of the protocol, and this daemon 1-1");
}

TEST_CASE("hybrid vsock: the VMM responds OK before the agent's first byte") {
  Host host(Opening::kConnect);
  CHECK(host.out == "CONNECT 1031\n");
  host.out.clear();
  SECTION("in pieces") {
    CHECK(host.receive("OK 107"));
    CHECK(host.out.empty());
    CHECK(host.receive("3741824\n"));
    CHECK_FALSE(host.out.empty());
  }
  SECTION("no listener") { CHECK_FALSE(host.receive("no such port\n")); }
  SECTION("endless") { CHECK_FALSE(host.receive(std::string(100, 'O'))); }
}

TEST_CASE("a serial line: both ends discard what was on it before") {
  Host host(Opening::kMark);
  CHECK(host.out == guest::kLineMark);
  host.out.clear();
  CHECK(host.receive("\x01\x02 rest of an answer to somebody else"));
  CHECK(host.out.empty());
  CHECK(host.receive(guest::kLineMark));
  CHECK_FALSE(host.out.empty());
}

TEST_CASE("the agent disconnects an invalid host, and places nothing for it") {
  GuestScene scene;
  scene.cpus({0, 1});
  scene.cgroup(kId);
  agent::Agent agent(scene.roots(), scene.threads);
  agent::Session there(agent);
  std::string out;
  const std::string hello = call(1, "Hello", guest::encode(guest::Hello{.program = "host"}));
  SECTION("no hello") {
    CHECK(there.receive(call(1, "Apply", guest::encode(spec_of(2, {1}, kId))), out));
  }
  SECTION("an unsupported version") {
    CHECK(there.receive(
        call(1, "Hello", guest::encode(guest::Hello{.version = 9, .oldest = 9, .program = {}})),
        out));
    CHECK(there.receive(call(3, "Apply", guest::encode(spec_of(2, {1}, kId))), out));
  }
  SECTION("an invalid request") {
    CHECK_FALSE(there.receive(hello + call(3, "Apply", "\x0a"), out));
  }
  SECTION("a stream with decreasing ids") {
    CHECK_FALSE(there.receive(hello + call(1, "Watch", {}), out));
  }
  SECTION("two watches") {
    CHECK_FALSE(there.receive(
        hello + call(3, "Watch", guest::encode_watch(1)) + call(5, "Watch", guest::encode_watch(1)),
        out));
  }
  SECTION("bytes") { CHECK_FALSE(there.receive(std::string(64, '\x07'), out)); }
  CHECK(scene.read("cgroup/" + kId + "/cpuset.cpus").empty());
}
