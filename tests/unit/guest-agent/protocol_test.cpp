// SPDX-License-Identifier: Apache-2.0
#include "base/ttrpc/envelope.hpp"
#include "base/ttrpc/wire.hpp"
#include "guest-agent/protocol/agent.pb.h"
#include "guest-agent/protocol/line.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "tests/catch.hpp"

using namespace ka;
namespace pb = kata_affinity::guest::v1;

namespace {

policy::GuestReport rich_report() {
  policy::GuestReport report;
  report.generation = 7;
  report.cpus = {{.number = 0, .hardware_id = 0, .online = true},
                 {.number = 1, .hardware_id = 300, .socket = 1, .core = 2, .thread = 1, .node = 3}};
  report.cpus.push_back({.number = 5});
  report.common = {0};
  report.containers = {{.id = "c1",
                        .wanted = {1},
                        .actual = {0, 1},
                        .method = policy::GuestMethod::kCgroupV1,
                        .problem = policy::GuestProblem::kThreadsOutside,
                        .threads = 12,
                        .outside = 2,
                        .processes = {{.pid = 9, .name = "sh", .threads = 3, .cpus = {1}}},
                        .quota_lifted = true}};
  report.interrupts_moved = 4;
  report.kernel_threads_stuck = 5;
  report.services_moved = true;
  report.idle = policy::GuestIdle::kOtherDriver;
  return report;
}

policy::GuestSpec rich_spec() {
  policy::GuestSpec spec;
  spec.vcpus = {{.hardware_id = 0, .index = 0, .cpus = {3, 4}, .nodes = {1}, .common = true},
                {.hardware_id = 9, .index = 4, .cpus = {5}, .dedicated = true, .common = false}};
  spec.containers = {
      {.id = "c1", .name = "app", .hardware_ids = {0, 9}, .dedicated = true, .lift_quota = true}};
  spec.release = true;
  spec.halt_poll = true;
  return spec;
}

}  // namespace

TEST_CASE("each end reads what the other writes") {
  CHECK(guest::decode_report(guest::encode(rich_report())) == rich_report());
  CHECK(guest::decode_spec(guest::encode(rich_spec())) == rich_spec());
  const guest::Hello hello{.version = 3, .oldest = 2, .program = "x"};
  CHECK(guest::decode_hello(guest::encode(hello)) == hello);
  CHECK(guest::decode_watch(guest::encode_watch(1ULL << 63)) == 1ULL << 63);
  const guest::ContainerNews news{.id = "c1", .stopped = true};
  CHECK(guest::decode_container(guest::encode(news)) == news);
}

TEST_CASE("messages are compatible with protobuf's, by agent.proto, both ways") {
  pb::Report report;
  REQUIRE(report.ParseFromString(guest::encode(rich_report())));
  CHECK(report.cpus(1).hardware_id() == 300);
  CHECK(report.cpus(0).has_hardware_id());
  CHECK_FALSE(report.cpus(2).has_hardware_id());
  CHECK(report.containers(0).processes(0).name() == "sh");
  CHECK(report.containers(0).quota_lifted());
  CHECK(guest::decode_report(report.SerializeAsString()) == rich_report());
  pb::ContainerRequest container;
  REQUIRE(container.ParseFromString(guest::encode(guest::ContainerNews{"c1", true})));
  CHECK((container.id() == "c1" && container.stopped()));
  pb::ApplyRequest spec;
  REQUIRE(spec.ParseFromString(guest::encode(rich_spec())));
  CHECK(spec.containers(0).hardware_ids(1) == 9);  // packed by protobuf, not by us
  CHECK(guest::decode_spec(spec.SerializeAsString()) == rich_spec());
}

TEST_CASE("fields of a later version are skipped") {
  ttrpc::Writer later;
  later.number(90, 5);
  later.text(91, "what is new");
  CHECK(guest::decode_report(guest::encode(rich_report()) + later.release()) == rich_report());
}

TEST_CASE("out-of-range messages are rejected as a whole") {
  const auto refused = [](auto change) {
    auto report = rich_report();
    change(report);
    return !guest::decode_report(guest::encode(report));
  };
  CHECK(refused([](auto& r) { r.cpus[1].number = 0; }));
  CHECK(refused([](auto& r) { r.cpus[2].number = policy::kMaxIds; }));
  CHECK(refused([](auto& r) { r.containers[0].id = std::string(200, 'x'); }));
  CHECK(refused([](auto& r) { r.containers[0].id = "a\nb"; }));
  CHECK(refused([](auto& r) { r.containers.push_back(r.containers[0]); }));
  CHECK(refused([](auto& r) { r.containers[0].problem = static_cast<policy::GuestProblem>(77); }));
  CHECK(refused([](auto& r) { r.containers[0].processes.resize(9); }));
  ttrpc::Writer backwards;
  backwards.text(3, "5-2");
  CHECK_FALSE(guest::decode_report(backwards.release()));
  CHECK_FALSE(guest::decode_report("\x08"));
  CHECK_FALSE(guest::decode_report(std::string("\x12\x05\x08", 3)));
  CHECK_FALSE(guest::decode_report("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"));
}

TEST_CASE("a report has at most as many CPUs and containers as a guest may have") {
  policy::GuestReport report;
  const auto is_read = [&report] { return guest::decode_report(guest::encode(report)) == report; };
  for (int i = 0; report.cpus.size() < guest::kMaxCpus; ++i) report.cpus.push_back({.number = i});
  CHECK(is_read());
  const int more = static_cast<int>(guest::kMaxCpus);
  report.cpus.push_back({.number = more});
  CHECK_FALSE(guest::decode_report(guest::encode(report)));
  report.cpus.pop_back();
  for (int i = 1000; report.containers.size() < guest::kMaxContainers; ++i) {
    report.containers.push_back({.id = std::to_string(i)});
  }
  CHECK(is_read());
  report.containers.push_back({.id = "9"});
  CHECK_FALSE(guest::decode_report(guest::encode(report)));
}

TEST_CASE("process names are made printable") {
  auto report = rich_report();
  report.containers[0].processes[0].name = "\x1b[2Jx";
  const auto read = guest::decode_report(guest::encode(report));
  REQUIRE(read);
  CHECK(read->containers[0].processes[0].name == "?[2Jx");
}

TEST_CASE("versions: the newest that both support, or none") {
  CHECK(guest::common_version({.version = 3, .oldest = 1}, {.version = 2, .oldest = 2}) == 2);
  CHECK_FALSE(guest::common_version({.version = 1, .oldest = 1}, {.version = 3, .oldest = 2}));
}

TEST_CASE("a serial line's mark is found however it is split") {
  const std::string before = "rest of an old frame";
  const std::string text = before + std::string(guest::kLineMark) + "new";
  for (std::size_t cut = 1; cut < text.size(); ++cut) {
    guest::LineScanner scanner;
    const auto first = scanner.find(std::string_view(text).substr(0, cut));
    const auto second = scanner.find(std::string_view(text).substr(cut));
    const std::size_t end = before.size() + guest::kLineMark.size();
    if (cut >= end) {
      CHECK(first == end);
      CHECK_FALSE(second);
    } else {
      CHECK_FALSE(first);
      CHECK(second == end - cut);
    }
  }
}
