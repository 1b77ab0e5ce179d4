// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/outbox.hpp"

#include "tests/catch.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using namespace ka::cluster;
using namespace std::chrono_literals;

namespace {

const Condition kIsolated{"True", "Isolated", "container app is alone on CPUs 2-3"};
const Condition kPinned{"False", "PinnedByHand", "container app is not isolated: pinned"};

Pods node_pods(const std::string& conditions = "[]") {
  Pods pods;
  REQUIRE(pods.replace(
      R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"uid":"u1","namespace":"shop",)"
      R"("name":"cart"},"status":{"conditions":)" +
      conditions + "}}]}"));
  return pods;
}

Sandbox sandbox(std::optional<Condition> condition, std::int64_t drift = 0) {
  return {.id = "s1", .pod_uid = "u1", .drift = drift, .condition = std::move(condition)};
}

struct Fixture {
  tests::TestClock clock;
  Outbox outbox{clock};
  Pods pods = node_pods();

  void daemon_says(Sandbox one, const std::vector<Drift>& drifts = {}) {
    outbox.update({std::move(one)}, drifts, pods);
  }
  std::optional<Write> next() const { return outbox.next(std::nullopt, pods); }
  /// As the watch brings it.
  void watch(const Condition& condition) {
    pods = node_pods(R"([{"type":"kata-affinity.io/Isolated","status":")" + condition.status +
                     R"(","reason":")" + condition.reason + R"(","message":")" + condition.message +
                     "\"}]");
  }
  /// Makes all writes that are due, and gives the events.
  std::vector<EventWrite> write_all() {
    std::vector<EventWrite> events;
    for (auto write = next(); write; write = next()) {
      if (const auto* event = std::get_if<EventWrite>(&*write)) events.push_back(*event);
      outbox.record(*write, Outcome::kDone);
      if (const auto* change = std::get_if<ConditionWrite>(&*write)) watch(*change->wanted);
    }
    return events;
  }
};

}  // namespace

TEST_CASE("nothing is written before the daemon has answered", "[cluster]") {
  Fixture f;
  f.pods = node_pods(R"([{"type":"kata-affinity.io/Isolated","status":"True"}])");
  CHECK_FALSE(f.next());
}

TEST_CASE("a pod gets its condition, then an event", "[cluster]") {
  Fixture f;
  f.daemon_says(sandbox(kIsolated));
  const auto write = f.next();
  REQUIRE(write);
  CHECK(std::get<ConditionWrite>(*write).wanted == kIsolated);
  const auto events = f.write_all();
  REQUIRE(events.size() == 1);
  CHECK(events[0].reason == "Isolated");
  CHECK_FALSE(events[0].is_warning);
  CHECK_FALSE(f.next());
}

TEST_CASE("what is written is not written again while the watch is late", "[cluster]") {
  Fixture f;
  f.daemon_says(sandbox(kIsolated));
  f.outbox.record(*f.next(), Outcome::kDone);
  f.outbox.record(*f.next(), Outcome::kDone);
  f.daemon_says(sandbox(kIsolated));
  CHECK_FALSE(f.next());
}

TEST_CASE("what the pod says already is not said again after a restart", "[cluster]") {
  Fixture f;
  f.pods = node_pods(R"([{"type":"kata-affinity.io/Isolated","status":"True","reason":"Isolated",)"
                     R"("message":"container app is alone on CPUs 2-3"}])");
  f.daemon_says(sandbox(kIsolated));
  CHECK_FALSE(f.next());
}

TEST_CASE("a pod without exclusive containers has no condition", "[cluster]") {
  Fixture f;
  f.daemon_says(sandbox(std::nullopt));
  CHECK_FALSE(f.next());
  f.pods = node_pods(R"([{"type":"kata-affinity.io/Isolated","status":"True"}])");
  const auto write = f.next();
  REQUIRE(write);
  CHECK_FALSE(std::get<ConditionWrite>(*write).wanted);
  f.outbox.record(*write, Outcome::kDone);
  CHECK_FALSE(f.next());
}

TEST_CASE("a pod and a reason have one event in ten minutes", "[cluster]") {
  Fixture f;
  std::size_t said = 0;
  const auto flap = [&] {
    f.daemon_says(sandbox(kPinned));
    said += f.write_all().size();
    f.daemon_says(sandbox(kIsolated));
    said += f.write_all().size();
  };
  for (int i = 0; i < 100; ++i) flap();
  CHECK(said == 2);
  f.clock.advance(10min - 1ms);
  flap();
  CHECK(said == 2);
  f.clock.advance(1ms);
  flap();
  CHECK(said == 4);
}

TEST_CASE("another text alone is no event", "[cluster]") {
  Fixture f;
  f.daemon_says(sandbox(kPinned));
  f.write_all();
  f.clock.advance(11min);
  Condition other = kPinned;
  other.message += "!";
  f.daemon_says(sandbox(other));
  REQUIRE(f.next());
  CHECK(f.write_all().empty());
}

TEST_CASE("a neighbour's fault has a reason of its own", "[cluster]") {
  Fixture f;
  Sandbox contested = sandbox(Condition{"False", "CpusContested", "CPU 2 is also assigned to b"});
  contested.is_contested = true;
  f.daemon_says(contested);
  const auto events = f.write_all();
  REQUIRE(events.size() == 1);
  CHECK(events[0].reason == "ContestedByNeighbour");
  CHECK(events[0].is_warning);
}

TEST_CASE("drift is reported once it is repaired", "[cluster]") {
  Fixture f;
  const Drift old{3, "s1", "before our start"}, drift{4, "s1", "2 threads had left"};
  f.daemon_says(sandbox(kIsolated), {old});
  f.write_all();
  f.daemon_says(sandbox(kIsolated, 2), {old, drift});
  CHECK(f.write_all().empty());
  f.daemon_says(sandbox(kIsolated), {old, drift});
  const auto events = f.write_all();
  REQUIRE(events.size() == 1);
  CHECK(events[0].reason == "DriftRepaired");
  CHECK(events[0].message == "2 threads had left");
  f.clock.advance(11min);
  f.daemon_says(sandbox(kIsolated), {old, drift});
  CHECK(f.write_all().empty());
  // The daemon has restarted, and counts anew.
  f.daemon_says(sandbox(kIsolated), {{1, "s1", "1 thread had left"}});
  CHECK(f.write_all().size() == 1);
}

TEST_CASE("where nothing is placed, nothing is repaired", "[cluster]") {
  Fixture f;
  Sandbox observed = sandbox(kPinned);
  observed.is_placed = false;
  f.daemon_says(observed);
  f.write_all();
  f.daemon_says(observed, {{1, "s1", "2 threads had left"}});
  CHECK(f.write_all().empty());
}

TEST_CASE("without its daemon nothing is known of a node's pods", "[cluster]") {
  Fixture f;
  f.daemon_says(sandbox(kIsolated));
  f.write_all();
  f.outbox.update_away();
  const auto write = f.next();
  REQUIRE(write);
  CHECK(std::get<ConditionWrite>(*write).wanted->status == "Unknown");
  CHECK(f.write_all().size() == 1);
  f.daemon_says(sandbox(kIsolated));
  CHECK(std::get<ConditionWrite>(*f.next()).wanted == kIsolated);
}

TEST_CASE("a write that failed is repeated, one that was refused waits", "[cluster]") {
  Fixture f;
  f.daemon_says(sandbox(kIsolated));
  f.outbox.record(*f.next(), Outcome::kFailed);
  REQUIRE(f.next());
  f.outbox.record(*f.next(), Outcome::kRefused);
  CHECK_FALSE(f.next());
  f.clock.advance(Outbox::kHold);
  f.daemon_says(sandbox(kIsolated));
  CHECK(f.next());
}

TEST_CASE("an event that failed is repeated", "[cluster]") {
  Fixture f;
  f.daemon_says(sandbox(kIsolated));
  f.outbox.record(*f.next(), Outcome::kDone);
  f.outbox.record(*f.next(), Outcome::kFailed);
  REQUIRE(f.next());
  CHECK(std::holds_alternative<EventWrite>(*f.next()));
}

TEST_CASE("everything is taken back, whatever the daemon says after that", "[cluster]") {
  Fixture f;
  f.watch(kIsolated);
  f.outbox.withdraw();
  f.daemon_says(sandbox(kIsolated));
  f.outbox.update_away();
  auto write = f.outbox.next(NodeState::kKept, f.pods);
  REQUIRE(write);
  CHECK_FALSE(std::get<NodeWrite>(*write).state);
  f.outbox.record(*write, Outcome::kDone);
  write = f.outbox.next(NodeState::kKept, f.pods);
  REQUIRE(write);
  CHECK_FALSE(std::get<ConditionWrite>(*write).wanted);
  f.outbox.record(*write, Outcome::kDone);
  CHECK_FALSE(f.outbox.next(NodeState::kKept, f.pods));
}

TEST_CASE("the node comes first, and once", "[cluster]") {
  Fixture f;
  f.daemon_says(sandbox(kIsolated));
  const auto write = f.outbox.next(NodeState::kKept, f.pods);
  REQUIRE(write);
  CHECK(std::get<NodeWrite>(*write).state == NodeState::kKept);
  f.outbox.record(*write, Outcome::kDone);
  CHECK(std::holds_alternative<ConditionWrite>(*f.outbox.next(NodeState::kKept, f.pods)));
  CHECK(std::holds_alternative<NodeWrite>(*f.outbox.next(NodeState::kBroken, f.pods)));
}
