// SPDX-License-Identifier: Apache-2.0
// Measuring latencies: the messages, and the two ends against each other and against one that lies.
#include "guest-agent/protocol/latency.hpp"

#include <poll.h>

#include "base/files.hpp"
#include "base/ttrpc/envelope.hpp"
#include "base/ttrpc/wire.hpp"
#include "guest-agent/agent/latency_meter.hpp"
#include "guest-agent/agent/session.hpp"
#include "guest-agent/host/measurement.hpp"
#include "guest-agent/protocol/agent.pb.h"
#include "guest-agent/protocol/messages.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"

using namespace ka;
using namespace std::chrono_literals;
using guest::LatencyHistogram;
namespace pb = kata_affinity::guest::v1;

namespace {

guest::LatencyRequest request_of(std::vector<std::uint64_t> ids) {
  return {.duration = 30ms, .interval = 1000us, .hardware_ids = std::move(ids)};
}

guest::Latencies latencies_of(std::uint64_t id) {
  guest::Latencies latencies{.realtime = true, .cpus = {}};
  guest::CpuLatency& cpu = latencies.cpus.emplace_back();
  cpu = {.hardware_id = id, .longest = 70000, .stolen = 10000000, .latencies = {}};
  cpu.latencies.add(3000);
  cpu.latencies.add(70000);
  return latencies;
}

std::string answer(std::uint32_t stream, std::string_view payload,
                   ttrpc::Code code = ttrpc::Code::kOk) {
  return ttrpc::write_answer(stream, {.code = code, .message = "no", .payload = payload});
}

/// A host that asked for CPU 1, and was greeted.
struct Host {
  Host() : session(request_of({1}), guest::Opening::kNone) {
    session.start();
    receive(answer(1, guest::encode(guest::Hello{.program = "agent"})));
  }

  void receive(std::string_view bytes) { session.receive(bytes, out); }
  base::ErrorCode failure() const {
    REQUIRE(session.result());
    REQUIRE_FALSE(*session.result());
    return session.result()->error().code;
  }

  std::string out;
  guest::MeasurementSession session;
};

/// CPUs that this machine has, as threads of the test may use them.
struct Machine : tests::GuestScene {
  Machine() { cpus({0, 1}); }
  agent::Calls calls;
};

void wait_for(agent::LatencyMeter& meter) {
  pollfd ready{.fd = meter.fd(), .events = POLLIN, .revents = 0};
  do {
    REQUIRE(::poll(&ready, 1, -1) == 1);
  } while (!meter.read());
}

}  // namespace

TEST_CASE("a latency lies within its bucket, and the bucket is narrow") {
  std::uint64_t before = 0;
  for (std::uint32_t bucket = 0; bucket < LatencyHistogram::kBuckets; ++bucket) {
    const std::uint64_t end = LatencyHistogram::end_of(bucket);
    CHECK(LatencyHistogram::bucket_of(end) == bucket);
    const std::uint64_t first = bucket == 0 ? 0 : before + 1;
    CHECK(LatencyHistogram::bucket_of(first) == bucket);
    CHECK((end - first) * 16 <= first);
    before = end;
  }
  CHECK(before >= 60000000000U);
  CHECK(LatencyHistogram::bucket_of(~std::uint64_t{0}) == LatencyHistogram::kBuckets - 1);
}

TEST_CASE("percentiles are those of the latencies") {
  LatencyHistogram latencies;
  CHECK(latencies.percentile(0.5) == 0);
  for (std::uint64_t i = 1; i <= 20; ++i) latencies.add(i);
  CHECK(latencies.total() == 20);
  CHECK(latencies.percentile(0.5) == 10);
  CHECK(latencies.percentile(0.951) == 20);
  CHECK(latencies.percentile(0) == 1);
  CHECK(latencies.percentile(1) == 20);
}

TEST_CASE("requests and latencies are read as they were written, and as protobuf writes them") {
  const auto request = request_of({0, 9});
  CHECK(guest::decode_latency_request(guest::encode(request)) == request);
  CHECK(guest::decode_latencies(guest::encode(latencies_of(7))) == latencies_of(7));
  pb::MeasureRequest theirs;
  REQUIRE(theirs.ParseFromString(guest::encode(request)));
  CHECK(theirs.milliseconds() == 30);
  CHECK(guest::decode_latency_request(theirs.SerializeAsString()) == request);
  pb::MeasureResponse response;
  REQUIRE(response.ParseFromString(guest::encode(latencies_of(7))));
  CHECK(response.cpus(0).buckets_size() == 2);
  CHECK(guest::decode_latencies(response.SerializeAsString()) == latencies_of(7));
}

TEST_CASE("what exceeds a limit is refused as a whole") {
  auto request = request_of({0});
  request.duration = 50s;
  CHECK(guest::decode_latency_request(guest::encode(request)));
  request.duration = 50001ms;
  CHECK_FALSE(guest::decode_latency_request(guest::encode(request)));
  request = request_of({0});
  request.interval = 99us;
  CHECK_FALSE(guest::decode_latency_request(guest::encode(request)));
  CHECK_FALSE(guest::decode_latency_request(guest::encode(request_of({}))));
  CHECK(guest::decode_latency_request(guest::encode(request_of(std::vector<std::uint64_t>(64)))));
  CHECK_FALSE(
      guest::decode_latency_request(guest::encode(request_of(std::vector<std::uint64_t>(65)))));
  pb::MeasureResponse twice;
  auto* cpu = twice.add_cpus();
  for (int i = 0; i < 2; ++i) {
    auto* bucket = cpu->add_buckets();
    bucket->set_number(4);
    bucket->set_count(1);
  }
  CHECK_FALSE(guest::decode_latencies(twice.SerializeAsString()));
  cpu->mutable_buckets(1)->set_number(LatencyHistogram::kBuckets - 1);
  CHECK(guest::decode_latencies(twice.SerializeAsString()));
  cpu->mutable_buckets(1)->set_number(LatencyHistogram::kBuckets);
  CHECK_FALSE(guest::decode_latencies(twice.SerializeAsString()));
}

TEST_CASE("it measures in the root cgroup, which allows all CPUs") {
  tests::TempDir files;
  files.write("cgroup.procs", "");
  const bool has_cpusets = GENERATE(true, false);
  agent::LatencyMeter meter("/proc");
  REQUIRE(meter.start({{0, 0}}, request_of({0}), has_cpusets ? files.path() : ""));
  wait_for(meter);
  CHECK(base::read_file((files.path() / "cgroup.procs").string()) == (has_cpusets ? "0" : ""));
}

TEST_CASE("the agent measures on the CPUs that the host named, and goes on serving") {
  Machine machine;
  agent::Agent agent(machine.roots(), machine.calls);
  agent::Session there(agent);
  guest::MeasurementSession host(request_of({0, 1}), guest::Opening::kNone);
  std::string out = host.start(), back;
  REQUIRE(there.receive(std::exchange(out, {}), back));
  host.receive(std::exchange(back, {}), out);
  REQUIRE(there.receive(out, back));
  CHECK(back.empty());
  CHECK_FALSE(agent.measure(request_of({0})));  // one at a time
  there.notify(back);
  CHECK(back.empty());
  wait_for(agent.meter());
  there.notify(back);
  host.receive(back, out);
  REQUIRE(host.result());
  REQUIRE(*host.result());
  const guest::Latencies& latencies = **host.result();
  REQUIRE(latencies.cpus.size() == 2);
  for (const guest::CpuLatency& cpu : latencies.cpus) {
    CHECK(cpu.latencies.total() > 0);
    CHECK(cpu.latencies.total() <= 30);
    CHECK(cpu.longest > 0);
    CHECK(cpu.latencies.percentile(1) >= cpu.longest);
  }
  CHECK(agent.measure(request_of({0})));
}

TEST_CASE("the agent refuses CPUs that it does not have, and malformed requests") {
  Machine machine;
  agent::Agent agent(machine.roots(), machine.calls);
  CHECK_FALSE(agent.measure(request_of({0, 5})));
  agent::Session there(agent);
  std::string back;
  const auto call = [](std::uint32_t stream, std::string_view method, std::string_view payload) {
    return ttrpc::write_call(stream,
                             {.service = guest::kService, .method = method, .payload = payload});
  };
  REQUIRE(there.receive(call(1, "Hello", guest::encode(guest::Hello{})), back));
  CHECK_FALSE(there.receive(call(3, "Measure", "\xff"), back));
}

TEST_CASE("a lying guest's measurement fails") {
  const std::string good = guest::encode(latencies_of(1));
  {
    Host host;
    host.receive(answer(3, good));
    REQUIRE(host.session.result());
    CHECK(*host.session.result());
  }
  for (const std::string& lie :
       {answer(5, good), answer(3, guest::encode(latencies_of(2))), answer(3, "\xff"),
        answer(3, guest::encode(guest::Latencies{})), std::string(2000, '\xff')}) {
    Host host;
    host.receive(lie);
    CHECK(host.failure() == base::ErrorCode::kUnavailable);
  }
}

TEST_CASE("an older agent, and one that measures already, are told apart") {
  Host old, busy;
  old.receive(answer(3, {}, ttrpc::Code::kUnimplemented));
  CHECK(old.failure() == base::ErrorCode::kUnavailable);
  CHECK(old.session.result()->error().message.find("cannot measure") != std::string::npos);
  busy.receive(answer(3, {}, ttrpc::Code::kFailedPrecondition));
  CHECK(busy.failure() == base::ErrorCode::kConflict);
}

TEST_CASE("a measurement of a guest that is not there ends with the reason, once") {
  boost::asio::io_context io;
  tests::TestClock clock;
  tests::TempDir dir;
  const guest::Address nobody{.kind = guest::Address::Kind::kUnix,
                              .path = (dir.path() / "none.sock").string()};
  int ended = 0;
  guest::Measurement measurement(io, clock, nobody, request_of({0}),
                                 [&](const base::Result<guest::Latencies>& result) {
                                   ++ended;
                                   CHECK_FALSE(result);
                                 });
  tests::run_for(io, clock, 50ms);
  CHECK(ended == 1);
}
