// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/node.hpp"

#include "affinity/cluster/view/pace.hpp"
#include "tests/catch.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using namespace ka::cluster;
using namespace std::chrono_literals;

namespace {

std::string list_of(const std::string& containers, const std::string& more = "") {
  return R"({"sandboxes":[{"id":"s1","pod_uid":"u1","drift":0,"containers":[)" + containers + "]" +
         more + "}]}";
}

std::optional<Condition> condition_of(const std::string& containers, const std::string& more = "") {
  const auto sandboxes = read_sandboxes(list_of(containers, more));
  REQUIRE(sandboxes);
  REQUIRE(sandboxes->size() == 1);
  return sandboxes->front().condition;
}

constexpr const char* kGood = R"({"id":"c1","name":"app","cpus":"2-3","isolated":true})";
constexpr const char* kBad =
    R"({"id":"c2","name":"db","cpus":"4","isolated":false,"obstacles":[{"reason":"cpus-contested",)"
    R"("text":"CPU 4 is also assigned to b","remedy":"restart one of the two pods"}]})";
constexpr const char* kShared = R"({"id":"c3","name":"log","isolated":null})";

}  // namespace

TEST_CASE("the condition of a pod is that of its exclusive containers", "[cluster]") {
  CHECK_FALSE(condition_of(kShared));
  CHECK(condition_of(std::string(kGood) + "," + kShared) ==
        Condition{"True", "Isolated", "container app is alone on CPUs 2-3"});
  const Condition contested{"False", "CpusContested",
                            "container db is not isolated: CPU 4 is also assigned to b (restart "
                            "one of the two pods)"};
  CHECK(condition_of(std::string(kGood) + "," + kBad) == contested);
  CHECK(condition_of(std::string(kBad) + "," + kGood) == contested);
  CHECK(condition_of(kGood, R"(,"seen":false,"trouble":"EACCES")") ==
        Condition{"Unknown", "Unseen", "EACCES"});
}

TEST_CASE("only what the daemon answers is believed", "[cluster]") {
  for (const char* text : {"", "{}", "[]", R"({"error":"x"})", R"({"sandboxes":)"}) {
    INFO(text);
    CHECK_FALSE(read_sandboxes(text));
    CHECK_FALSE(read_drifts(text));
    CHECK_FALSE(read_node(text, R"({"verdict":"ok"})"));
    CHECK_FALSE(read_node(R"({"enabled":true})", text));
  }
}

TEST_CASE("the state of a node", "[cluster]") {
  const auto state = [](const char* node, const char* verdict) {
    return read_node(node, std::string(R"({"verdict":")") + verdict + "\"}").value();
  };
  constexpr const char* kOn = R"({"enabled":true,"observe":false})";
  CHECK(state(kOn, "ok") == NodeState::kKept);
  CHECK(state(kOn, "degraded") == NodeState::kDegraded);
  CHECK(state(kOn, "violated") == NodeState::kBroken);
  CHECK(state(kOn, "unknown") == NodeState::kUnknown);
  CHECK(state(kOn, "new-verdict") == NodeState::kUnknown);
  CHECK(state(R"({"enabled":true,"observe":true})", "violated") == NodeState::kObserved);
  CHECK(state(R"({"enabled":false})", "ok") == NodeState::kDisabled);
}

TEST_CASE("a node is broken by a violation that stays, or without a daemon", "[cluster]") {
  tests::TestClock clock;
  NodeHealth health(clock);
  CHECK_FALSE(health.state());
  health.record(NodeState::kBroken);
  CHECK_FALSE(health.state());
  health.record(NodeState::kKept);
  health.record(NodeState::kBroken);
  CHECK(health.state() == NodeState::kKept);
  health.record(NodeState::kBroken);
  CHECK(health.state() == NodeState::kBroken);
  health.record(NodeState::kKept);
  clock.advance(60s - 1ms);
  CHECK(health.state() == NodeState::kKept);
  clock.advance(1ms);
  CHECK(health.state() == NodeState::kBroken);
  health.record(NodeState::kDegraded);
  CHECK(health.state() == NodeState::kDegraded);
}

TEST_CASE("writes keep their pace", "[cluster]") {
  tests::TestClock clock;
  Pace pace(clock, 4s, 1s);
  CHECK(pace.pause() == 1s);
  const auto count = [&](std::chrono::milliseconds time) {
    int writes = 0;
    for (auto left = time; left > 0ms; left -= 100ms, clock.advance(100ms)) {
      for (; pace.pause() == 0s; ++writes) pace.spend();
    }
    return writes;
  };
  // At the start one each interval, without a burst.
  CHECK(count(1s + 40s) == 10);
  clock.advance(1h);
  CHECK(count(100ms) == Pace::kBurst);
  CHECK(count(40s) == 10);
  clock.advance(1h);
  pace.restart(2s);
  CHECK(pace.pause() == 2s);
  CHECK(count(2s + 40s) == 10);
}
