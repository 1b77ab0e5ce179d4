// SPDX-License-Identifier: Apache-2.0
#include "affinity/memory/memory_keeper.hpp"

#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using namespace std::chrono_literals;

namespace {

/// Writes down what is asked, and does nothing.
class FakeJobs final : public memory::MemoryJobs {
 public:
  void submit(memory::MemoryJob job) override { submitted.push_back(std::move(job)); }
  void cancel(const std::string& sandbox) override { cancelled.push_back(sandbox); }

  std::vector<memory::MemoryJob> submitted;
  std::vector<std::string> cancelled;
};

line::Options moving() {
  line::Options options = tests::at_home();
  options.settings.move_memory = true;
  return options;
}

/// Eight CPUs, four a node.
policy::Topology on_nodes(int nodes) {
  std::vector<policy::Cpu> cpus;
  for (int cpu = 0; cpu < 8; ++cpu) cpus.push_back({.cpu = cpu, .core = cpu, .numa = cpu % nodes});
  return policy::Topology::make(std::move(cpus)).value();
}

struct Scene {
  explicit Scene(int nodes = 2) {
    host.line().change_topology(on_nodes(nodes));
    host.boot_vm(100, 2);
    REQUIRE(host.add("s1", 100));
    keeper.refresh();
  }

  /// What was asked since the last call.
  std::size_t submissions() { return std::exchange(jobs.submitted, {}).size(); }
  void record(policy::plan::MemoryVerdict verdict, std::chrono::nanoseconds elapsed) {
    board::MemoryView view;
    view.plan.verdict = verdict;
    keeper.record("s1", view, elapsed);
  }
  /// Until the next look, to a second; nothing may be asked before.
  std::chrono::seconds until_next() {
    for (auto passed = 1s; passed <= 2h; ++passed) {
      host.clock.advance(1s);
      keeper.refresh();
      if (submissions() > 0) return passed;
    }
    return {};
  }

  tests::LineScene host{8, moving()};
  boost::asio::io_context io;
  FakeJobs jobs;
  memory::MemoryKeeper keeper{io, host.line(), host.board(), jobs, host.clock};
};

}  // namespace

TEST_CASE("a sandbox's memory is read once at a time") {
  Scene scene;
  REQUIRE(scene.jobs.submitted.size() == 1);
  CHECK(scene.jobs.submitted[0].sandbox == "s1");
  CHECK(scene.jobs.submitted[0].vmm == tests::process_id(100));
  CHECK(scene.jobs.submitted[0].move);
  CHECK(scene.submissions() == 1);
  scene.host.clock.advance(2h);
  scene.keeper.refresh();
  scene.keeper.refresh_now("s1");
  CHECK(scene.submissions() == 0);
}

TEST_CASE("the interval grows with the duration of a read") {
  Scene scene;
  scene.submissions();
  scene.record(policy::plan::MemoryVerdict::kInPlace, 1ms);
  CHECK(scene.until_next() == 30s);
  scene.record(policy::plan::MemoryVerdict::kInPlace, 20ms);
  CHECK(scene.until_next() == 100s);
  scene.record(policy::plan::MemoryVerdict::kInPlace, 1min);
  CHECK(scene.until_next() == 1h);
}

TEST_CASE("with one NUMA node memory is read once an hour") {
  Scene scene(1);
  scene.submissions();
  scene.record(policy::plan::MemoryVerdict::kAnywhere, 1ms);
  CHECK(scene.until_next() == 1h);
}

TEST_CASE("failed migrations are retried with increasing delay until the memory is local") {
  Scene scene;
  scene.submissions();
  for (const auto expected : {60s, 120s, 240s}) {
    scene.record(policy::plan::MemoryVerdict::kNoRoom, 1ms);
    CHECK(scene.until_next() == expected);
  }
  scene.record(policy::plan::MemoryVerdict::kInPlace, 1ms);
  CHECK(scene.until_next() == 30s);
}

TEST_CASE("no read is scheduled during a migration") {
  Scene scene;
  scene.submissions();
  board::MemoryView view;
  view.moving = true;
  scene.keeper.record("s1", view, 1ms);
  scene.host.clock.advance(2h);
  scene.keeper.refresh();
  CHECK(scene.submissions() == 0);
  CHECK(scene.host.line().node().view("s1")->memory->moving);
}

TEST_CASE("a new target is requested at once, also during a pending request") {
  Scene scene;
  scene.submissions();
  scene.host.line().configure(tests::at_home());
  REQUIRE(scene.host.line().node().view("s1")->moves_memory() != moving().settings.move_memory);
  scene.keeper.refresh();
  REQUIRE(scene.jobs.submitted.size() == 1);
  CHECK_FALSE(scene.jobs.submitted[0].move);
}

TEST_CASE("a caller can bring the next read forward") {
  Scene scene;
  scene.submissions();
  scene.record(policy::plan::MemoryVerdict::kInPlace, 1ms);
  scene.keeper.refresh();
  CHECK(scene.submissions() == 0);
  scene.keeper.refresh_now("s1");
  CHECK(scene.submissions() == 1);
}

TEST_CASE("a published sandbox is followed from the loop's next iteration until it ends") {
  Scene scene;
  scene.submissions();
  REQUIRE(scene.host.remove("s1"));
  CHECK(scene.jobs.cancelled.empty());
  tests::run_ready(scene.io);
  CHECK(scene.jobs.cancelled == std::vector<std::string>{"s1"});
  scene.record(policy::plan::MemoryVerdict::kInPlace, 1ms);  // it was too late
  scene.keeper.refresh();
  CHECK(scene.submissions() == 0);
}
