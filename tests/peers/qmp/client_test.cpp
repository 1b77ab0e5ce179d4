// SPDX-License-Identifier: Apache-2.0
#include "vmm/qmp/client.hpp"

#include <boost/asio/io_context.hpp>
#include <optional>

#include "tests/catch.hpp"
#include "tests/peers/qmp/scripted_qemu.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "vmm/address/qmp_socket.hpp"
#include "vmm/qmp/intake.hpp"

using namespace ka;
using namespace ka::qmp;
using namespace std::chrono_literals;
using tests::answer;
using tests::expect;
using tests::hang_up;
using tests::say;
using tests::ScriptedQemu;
using tests::Step;
using tests::wait;

namespace {

const std::string kGreeting =
    R"({"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": []}})"
    "\r\n";

constexpr auto kDeadline = 200ms;
constexpr auto kPause = 5ms;

std::string cpu(int index, int tid) {
  return R"({"cpu-index": )" + std::to_string(index) + R"(, "thread-id": )" + std::to_string(tid) +
         R"(, "qom-path": "/cpu/)" + std::to_string(index) + R"(", "target": "x86_64"})";
}

std::vector<Step> operator+(std::vector<Step> a, const std::vector<Step>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Step> hello() { return {say(kGreeting), answer("qmp_capabilities", "{}")}; }

/// The three queries, with one vCPU.
std::vector<Step> queries(const std::string& cpus) {
  return {answer("query-cpus-fast", '[' + cpus + ']'),
          answer("query-iothreads", R"([{"id": "io1", "thread-id": 77}])"),
          answer("query-hotpluggable-cpus", "[]")};
}

/// A client in an io_context of its own, and everything that it told.
struct Bench {
  tests::TempDir dir;
  boost::asio::io_context io{1};
  tests::TestClock clock;
  std::vector<vmm::MonitorFacts> facts;
  std::vector<base::Error> failures;
  std::unique_ptr<vmm::Monitor> client;

  std::filesystem::path socket() const { return dir.path() / "q.sock"; }

  void start() {
    auto started = Client::start(
        io, clock,
        {.socket = socket(), .deadline = kDeadline, .first_pause = kPause, .last_pause = 20ms},
        {.facts = [this](vmm::MonitorFacts report) { facts.push_back(std::move(report)); },
         .failed = [this](const base::Error& error) { failures.push_back(error); }});
    REQUIRE(started);
    client = std::move(*started);
  }

  /// The peer is a thread: it is waited for, while the clock stands still.
  template <typename Condition>
  void run_until(Condition condition) {
    tests::run_until(io, condition);
  }

  void pass(base::Clock::Time::duration time) {
    tests::run_ready(io);
    clock.advance(time);
    tests::run_ready(io);
  }

  void stop() {
    client.reset();
    tests::run_ready(io);
  }
};

}  // namespace

TEST_CASE("a client connects, queries and reports") {
  Bench bench;
  ScriptedQemu qemu(bench.socket(),
                    hello() + queries(cpu(0, 50) + ',' + cpu(1, 51)) +
                        std::vector{answer("qom-get", "0"), answer("qom-get", "4"), wait()});
  bench.start();
  bench.run_until([&] { return !bench.facts.empty(); });
  const vmm::MonitorFacts& facts = bench.facts[0];
  REQUIRE(facts.vcpus.size() == 2);
  CHECK(facts.vcpus[1].tid == 51);
  CHECK(facts.vcpus[1].facts.apic_id == 4);
  CHECK(facts.iothreads == std::vector<vmm::MonitorFacts::Iothread>{{.id = "io1", .tid = 77}});
  bench.stop();
  CHECK(qemu.failure() == "");
  CHECK(bench.failures.empty());
}

TEST_CASE("a refresh queries APIC ids only for vCPUs with a new thread") {
  Bench bench;
  ScriptedQemu qemu(bench.socket(), hello() + queries(cpu(0, 50)) +
                                        std::vector{answer("qom-get", "0")} +
                                        queries(cpu(0, 50) + ',' + cpu(3, 53)) +
                                        std::vector{answer("qom-get", "3"), wait()});
  bench.start();
  bench.run_until([&] { return bench.facts.size() == 1; });
  bench.client->refresh();
  bench.client->refresh();
  bench.pass(kBetweenRounds);
  bench.run_until([&] { return bench.facts.size() == 2; });
  CHECK(bench.facts[1].vcpus[1].facts.index == 3);
  CHECK(bench.facts[1].vcpus[0].facts.apic_id == 0);
  bench.stop();
  CHECK(qemu.failure() == "");
}

TEST_CASE("only events about vCPUs cause another query") {
  Bench bench;
  ScriptedQemu qemu(bench.socket(),
                    hello() + queries(cpu(0, 50)) + std::vector{answer("qom-get", "0")} +
                        std::vector{say(R"({"event": "SHUTDOWN", "data": {"guest": true}})"
                                        "\r\n"),
                                    say(R"({"event": "DEVICE_DELETED", "data": {"path": "/x"}})"
                                        "\r\n")} +
                        queries("") + std::vector{wait()});
  bench.start();
  bench.run_until([&] { return bench.facts.size() == 1; });
  bench.pass(kBetweenRounds);
  bench.run_until([&] { return bench.facts.size() == 2; });
  CHECK(bench.facts[1].vcpus.empty());
  bench.stop();
  CHECK(qemu.failure() == "");
}

TEST_CASE("machines without APIC ids or pluggable vCPUs are reported without them") {
  Bench bench;
  const std::string refused = R"({"error": {"class": "GenericError", "desc": "no"}, "id": $ID})";
  ScriptedQemu qemu(bench.socket(),
                    hello() + std::vector{answer("query-cpus-fast", '[' + cpu(0, 50) + ']'),
                                          answer("query-iothreads", "[]"),
                                          expect("query-hotpluggable-cpus", refused),
                                          expect("qom-get", refused), wait()});
  bench.start();
  bench.run_until([&] { return !bench.facts.empty(); });
  CHECK_FALSE(bench.facts[0].vcpus[0].facts.apic_id);
  bench.stop();
  CHECK(qemu.failure() == "");
}

TEST_CASE("a lost connection is opened again") {
  Bench bench;
  ScriptedQemu qemu(bench.socket(), hello() + queries("") + std::vector{hang_up()} + hello() +
                                        queries(cpu(0, 60)) +
                                        std::vector{answer("qom-get", "0"), wait()});
  bench.start();
  bench.run_until([&] { return !bench.failures.empty(); });
  bench.pass(kBetweenRounds);
  bench.run_until([&] { return bench.facts.size() == 2; });
  CHECK(bench.facts[1].vcpus.size() == 1);
  CHECK(bench.failures.size() == 1);
  CHECK(bench.failures[0].code == base::ErrorCode::kUnavailable);
  bench.stop();
  CHECK(qemu.failure() == "");
}

TEST_CASE("a server that misses a deadline is reported and disconnected") {
  Bench bench;
  SECTION("no greeting: it serves another client") {
    ScriptedQemu qemu(bench.socket(), {wait()});
    bench.start();
    bench.pass(kDeadline - 1ms);
    CHECK(bench.failures.empty());
    bench.pass(1ms);
    bench.run_until([&] { return !bench.failures.empty(); });
    CHECK(bench.failures[0].message.find("no greeting") != std::string::npos);
    bench.stop();
    CHECK(qemu.failure() == "");
  }
  SECTION("no response to a command; the next connection is served") {
    ScriptedQemu qemu(bench.socket(), hello() + std::vector{expect("query-cpus-fast", ""), wait()} +
                                          hello() + queries("") + std::vector{wait()});
    bench.start();
    bench.run_until([&] { return qemu.steps() == 3; });
    bench.pass(kDeadline);
    bench.run_until([&] { return !bench.failures.empty(); });
    bench.pass(kBetweenRounds);
    bench.run_until([&] { return !bench.facts.empty(); });
    REQUIRE(bench.failures.size() == 1);
    CHECK(bench.failures[0].message.find("no response to query-cpus-fast") != std::string::npos);
    bench.stop();
    CHECK(qemu.failure() == "");
  }
}

TEST_CASE("a server that does not speak QMP is reported and retried") {
  Bench bench;
  ScriptedQemu qemu(bench.socket(), std::vector{say("HTTP/1.1 400\r\n"), wait()} + hello() +
                                        std::vector{answer("query-cpus-fast", "7")} +
                                        std::vector{wait()});
  bench.start();
  bench.run_until([&] { return bench.failures.size() == 1; });
  bench.pass(kPause);
  bench.run_until([&] { return bench.failures.size() == 2; });
  CHECK(bench.failures[0].code == base::ErrorCode::kInvalid);
  CHECK(bench.failures[1].message.find("query-cpus-fast") != std::string::npos);
  bench.stop();
  CHECK(qemu.failure() == "");
}

TEST_CASE("a refused connection is reported, and retried with growing delays") {
  Bench bench;
  bench.start();
  bench.pass(0ms);
  REQUIRE(bench.failures.size() == 1);
  CHECK(bench.failures[0].code == base::ErrorCode::kGone);
  for (const auto pause : {5ms, 10ms, 20ms, 20ms}) {
    const std::size_t before = bench.failures.size();
    bench.pass(pause - 1ms);
    CHECK(bench.failures.size() == before);
    bench.pass(1ms);
    CHECK(bench.failures.size() == before + 1);
  }
  bench.stop();
}

TEST_CASE("a handler may destroy the client") {
  Bench bench;
  const auto run = [&bench](vmm::MonitorHandlers handlers) {
    auto started =
        Client::start(bench.io, bench.clock,
                      {.socket = bench.socket(), .deadline = kDeadline, .first_pause = kPause},
                      std::move(handlers));
    REQUIRE(started);
    bench.client = std::move(*started);
    bench.run_until([&] { return bench.client == nullptr; });
    tests::run_ready(bench.io);
  };
  SECTION("from its failure handler") {
    run({.facts = {}, .failed = [&bench](const base::Error&) { bench.client.reset(); }});
  }
  SECTION("from its report handler") {
    ScriptedQemu qemu(bench.socket(), hello() + queries("") + std::vector{wait()});
    run({.facts = [&bench](const vmm::MonitorFacts&) { bench.client.reset(); }, .failed = {}});
    CHECK(qemu.failure() == "");
  }
}

TEST_CASE("an io_context may end while a client waits") {
  tests::TempDir dir;
  std::vector<tests::Step> script = hello() + std::vector{expect("query-cpus-fast", ""), wait()};
  const std::size_t waiting = script.size() - 1;
  ScriptedQemu qemu(dir.path() / "q.sock", std::move(script));
  {
    boost::asio::io_context io{1};
    const base::Clock clock;
    auto client = Client::start(io, clock, {.socket = dir.path() / "q.sock"}, {});
    REQUIRE(client);
    tests::run_until(io, [&] { return qemu.steps() == waiting; });
  }
  CHECK(qemu.failure() == "");
}

TEST_CASE("Kata's own socket is rejected by its name") {
  tests::TempDir dir;
  const auto refused = [](const std::filesystem::path& path) {
    const auto checked = vmm::check_qmp_socket(path);
    return !checked && checked.error().code == base::ErrorCode::kInvalid;
  };
  CHECK(refused("/run/vc/vm/abc/qmp.sock"));
  CHECK(refused("/run/vc/vm/abc/../abc/qmp.sock"));
  CHECK(refused("/run//vc/vm/abc/./qmp.sock"));
  CHECK(refused("/run/user/1000/run/vc/vm/abc/qmp.sock"));
  CHECK(refused("/run/kata/abc/root/qmp.sock"));
  CHECK(refused("/srv/node/vc/vm/abc/qmp.sock"));
  CHECK(refused("/run/containerd/io.containerd.runtime.v2.task/k8s.io/abc/qmp.sock"));
  CHECK_FALSE(refused("/run/vc/vm/abc/extra-monitor.sock"));
  CHECK_FALSE(refused("/tmp/demo/qmp.sock"));
  CHECK(refused("qmp.sock"));
  CHECK(refused('/' + std::string(200, 'a')));
  dir.write("run/vc/vm/s/qmp.sock", "");
  dir.link("innocent.sock", (dir.path() / "run/vc/vm/s/qmp.sock").string());
  CHECK(refused(dir.path() / "innocent.sock"));
  dir.link("loop.sock", (dir.path() / "loop.sock").string());
  const auto unseen = vmm::check_qmp_socket(dir.path() / "loop.sock");  // ELOOP
  REQUIRE_FALSE(unseen);
  CHECK(unseen.error().code != base::ErrorCode::kInvalid);

  boost::asio::io_context io{1};
  const base::Clock clock;
  const auto client = Client::start(io, clock, {.socket = "/run/vc/vm/abc/qmp.sock"}, {});
  REQUIRE_FALSE(client);
  CHECK(client.error().message.find("one client per socket") != std::string::npos);
}

TEST_CASE("Kata's own socket is left at once where another name leads to it") {
  tests::TempDir dir;
  std::filesystem::create_directories(dir.path() / "vc/vm/s");
  const auto own = dir.path() / "vc/vm/s/qmp.sock";
  ScriptedQemu qemu(own, hello());
  std::filesystem::create_hard_link(own, dir.path() / "innocent.sock");
  boost::asio::io_context io{1};
  const base::Clock clock;
  std::string why;
  const auto client = Client::start(
      io, clock, {.socket = dir.path() / "innocent.sock"},
      {.facts = {}, .failed = [&](const base::Error& error) { why = error.message; }});
  REQUIRE(client);
  tests::run_until(io, [&] { return !why.empty(); });
  CHECK(why.find("Kata's own QMP socket") != std::string::npos);
}

TEST_CASE("a server that sends without end is read at a bounded rate") {
  using namespace std::chrono_literals;
  const Intake::Clock::time_point start{};
  Intake intake(start);
  CHECK(intake.spend(kReadBurst, start) == 0s);
  CHECK(intake.spend(kReadRate / 4, start) == 250ms);
  CHECK(intake.spend(0, start + 250ms) == 0s);
  CHECK(intake.spend(kReadRate, start + 1250ms) == 0s);
  // What was not used is kept, but no more than the burst.
  CHECK(intake.spend(kReadBurst, start + 1h) == 0s);
  CHECK(intake.spend(kReadRate, start + 1h) == 1s);
}

TEST_CASE("many events cause few rounds of queries") {
  Bench bench;
  std::string resets;
  for (int i = 0; i < 2000; ++i)
    resets += R"({"event": "RESET", "data": {}})"
              "\r\n";
  ScriptedQemu qemu(bench.socket(), hello() + queries(cpu(0, 50)) +
                                        std::vector{answer("qom-get", "0"), say(resets)} +
                                        queries(cpu(0, 50)) + std::vector{wait()});
  bench.start();
  bench.run_until([&] { return bench.facts.size() == 1 && qemu.steps() == 7; });
  tests::run_for(bench.io, bench.clock, kBetweenRounds - 1ms, 1ms);
  CHECK(qemu.steps() == 7);
  bench.pass(1ms);
  bench.run_until([&] { return bench.facts.size() == 2; });
  bench.stop();
  CHECK(qemu.failure() == "");
}
