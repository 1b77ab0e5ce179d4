// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/client.hpp"

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/fake_node.hpp"
#include "tests/peers/clh/scripted_api.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "vmm/clh/api_socket.hpp"
#include "vmm/threads.hpp"

using namespace ka;
using namespace std::chrono_literals;
using base::ErrorCode;
using tests::http_answer;
using tests::ScriptedApi;
using tests::vm_info;

namespace {

/// A client in an io_context of its own, and everything that it told.
struct Bench {
  tests::TempDir dir;
  boost::asio::io_context io{1};
  base::Clock clock;
  std::vector<std::size_t> vcpus;
  std::vector<base::Error> failures;
  std::unique_ptr<vmm::Monitor> client;

  std::filesystem::path socket() const { return dir.path() / "api.sock"; }

  void start() {
    client = *clh::Client::start(
        io, clock, {.socket = socket(), .deadline = 200ms, .first_pause = 5ms, .last_pause = 20ms},
        {.facts = [this](const vmm::MonitorFacts& f) { vcpus.push_back(f.vcpus.size()); },
         .failed = [this](const base::Error& error) { failures.push_back(error); }});
  }

  void run_until(const std::function<bool()>& done) { tests::run_until(io, done); }
};

}  // namespace

TEST_CASE("the API is queried at the start and on each request") {
  Bench bench;
  ScriptedApi api(bench.socket(), {http_answer(200, vm_info(2)), http_answer(200, vm_info(3))});
  bench.start();
  bench.run_until([&] { return bench.vcpus.size() == 1; });
  bench.client->refresh();
  bench.client->refresh();
  bench.run_until([&] { return bench.vcpus.size() == 2; });
  CHECK(bench.vcpus == std::vector<std::size_t>{2, 3});
  CHECK(bench.failures.empty());
  bench.client.reset();
  CHECK(api.questions.front().starts_with("GET /api/v1/vm.info HTTP/1.1\r\n"));
}

TEST_CASE("a VMM without a VM yet, or with an unexpected response, is queried again") {
  Bench bench;
  ScriptedApi api(bench.socket(),
                  {http_answer(404, ""), http_answer(200, "{}"), "not HTTP\r\n\r\n",
                   "HTTP/1.1 200 \r\nContent-Length: 9\r\n\r\n{", http_answer(200, vm_info(4))});
  bench.start();
  bench.run_until([&] { return !bench.vcpus.empty(); });
  CHECK(bench.vcpus == std::vector<std::size_t>{4});
  REQUIRE(bench.failures.size() == 4);
  CHECK(bench.failures[0].code == ErrorCode::kUnavailable);
  CHECK(bench.failures[0].message.ends_with("status 404"));
  CHECK(bench.failures[1].code == ErrorCode::kInvalid);
  CHECK(bench.failures[2].code == ErrorCode::kInvalid);
  CHECK(bench.failures[3].code == ErrorCode::kUnavailable);
}

TEST_CASE("a request without a response times out, and does not affect the next") {
  Bench bench;
  ScriptedApi api(bench.socket(), {"", http_answer(200, vm_info(1))});
  bench.start();
  bench.run_until([&] { return !bench.vcpus.empty(); });
  REQUIRE(bench.failures.size() == 1);
  CHECK(bench.failures[0].message.ends_with("no response in time"));
}

TEST_CASE("a refused connection is retried with growing delays, until the end") {
  Bench bench;
  bench.start();
  bench.run_until([&] { return bench.failures.size() == 3; });
  CHECK(bench.failures[0].code == ErrorCode::kGone);
  bench.client.reset();
  bench.io.run_for(50ms);
  CHECK(bench.failures.size() == 3);
}

TEST_CASE("requests during failures do not shorten the delays") {
  const tests::TempDir dir;
  boost::asio::io_context io;
  tests::TestClock clock;
  int failures = 0;
  const auto client =
      *clh::Client::start(io, clock, {.socket = dir.path() / "nothing"},
                          {.facts = {}, .failed = [&](const base::Error&) { ++failures; }});
  tests::run_ready(io);
  client->refresh();
  tests::run_ready(io);
  CHECK(failures == 1);
  clock.advance(100ms);
  tests::run_ready(io);
  CHECK(failures == 2);
}

TEST_CASE("a handler may destroy the client") {
  Bench bench;
  ScriptedApi api(bench.socket(), {http_answer(200, vm_info(2))});
  bool reported = false;
  bench.client = *clh::Client::start(bench.io, bench.clock, {.socket = bench.socket()},
                                     {.facts =
                                          [&](const vmm::MonitorFacts&) {
                                            reported = true;
                                            bench.client.reset();
                                          },
                                      .failed = {}});
  bench.run_until([&] { return reported; });
  bench.io.run_for(20ms);
}

TEST_CASE("the API socket comes from the command line, or is Kata's") {
  const tests::TempDir dir;
  std::vector<std::string> arguments = {"/opt/kata/bin/cloud-hypervisor"};
  const auto find = [&](bool by_operator = true) {
    return clh::find_socket({.sandbox = "s1",
                             .command_line = arguments,
                             .named_socket = {},
                             .by_operator = by_operator,
                             .run = dir.path()});
  };
  CHECK(find() == std::nullopt);

  const auto katas = dir.path() / "vc/vm/s1/clh-api.sock";
  std::filesystem::create_directories(katas.parent_path());
  const ScriptedApi at_katas(katas, {});
  CHECK(find() == katas);

  const auto own = dir.path() / "own.sock";
  const ScriptedApi at_own(own, {});
  for (const std::string& value : {own.string(), "path=" + own.string()}) {
    arguments = {"cloud-hypervisor", "-v", "--api-socket", value};
    CHECK(find() == own);
    arguments = {"cloud-hypervisor", "--api-socket=" + value};
    CHECK(find() == own);
    CHECK(find(false) == katas);
  }
  arguments = {"cloud-hypervisor", "--api-socket", "fd=3"};
  CHECK(find() == katas);
  for (const std::vector<std::string>& other : {{}, std::vector<std::string>{"firecracker"}}) {
    arguments = other;
    CHECK(find() == std::nullopt);
  }
}

TEST_CASE("discovery repeats while a vCPU of the API has no thread") {
  const tests::FakeNode node;
  const vmm::Roots roots{.proc = node.proc(), .debugfs = node.debugfs(), .cgroup = node.cgroup()};
  node.process(42, 1, "cloud-hyperviso", "/opt/kata/bin/cloud-hypervisor");
  node.thread(42, 50, "vcpu0");
  vmm::MonitorFacts reported{.source = "cloud-hypervisor"};
  reported.vcpus = {{.facts = {.index = 0}},
                    {.facts = {.index = 1, .socket = 1, .core = 1, .numa = 1}}};
  const vmm::Target target{tests::process_id(42), ""};
  auto found = tests::discover(roots, target, &reported);
  REQUIRE(found);
  CHECK_FALSE(found->complete);
  CHECK(found->conflicts.empty());
  node.thread(42, 51, "vcpu1");
  found = tests::discover(roots, target, &reported);
  REQUIRE(found);
  CHECK(found->complete);
  REQUIRE(found->vcpus.size() == 2);
  CHECK(found->vcpus[1].socket == 1);
  CHECK(found->vcpus[1].numa == 1);
}
