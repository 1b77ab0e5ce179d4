// SPDX-License-Identifier: Apache-2.0
// grade = "quiet": which CPUs the host is kept off, and who is quiet then.
#include "policy/plan/quiet.hpp"

#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

namespace {

using Claims = std::vector<QuietClaim>;

/// Cores 0,4 1,5 2,6 3,7.
const Topology kMachine = scenario::machine(1, 4, 2);

std::string beside_floor(const Claims& claims, const CpuSet& floor, const CpuSet& held = {}) {
  std::string ids;
  for (const QuietClaim& claim : claims_beside_floor(kMachine, claims, held, floor)) {
    ids += claim.sandbox;
  }
  return ids;
}

}  // namespace

TEST_CASE("annotation, namespace and handler decide the grade, in this order") {
  Settings settings;
  QuietRules rules{.floor = {}, .namespaces = {"shop"}, .by_annotation = false};
  const auto grade = [&](const char* name, GradeRequest request) {
    const PodGrade own = grade_of({name, request, settings}, rules);
    const std::string text(grade_name(own.grade));
    if (!own.refused) return text;
    return text + (own.refused->reason == NotQuiet::kNoGrade ? ", unknown" : ", not allowed");
  };
  using enum GradeRequest;
  CHECK(grade("", kNone) == "best-effort");
  CHECK(grade("shop/cart", kNone) == "quiet");
  CHECK(grade("shopping/cart", kNone) == "best-effort");
  CHECK(grade("shop", kNone) == "best-effort");
  CHECK(grade("bank/till", kQuiet) == "best-effort, not allowed");
  CHECK(grade("shop/cart", kQuiet) == "quiet");
  CHECK(grade("shop/cart", kBestEffort) == "quiet, not allowed");
  CHECK(grade("shop/cart", kUnknown) == "quiet, unknown");
  settings.allow_grades = {Grade::kQuiet};
  CHECK(grade("bank/till", kQuiet) == "best-effort, not allowed");
  rules.by_annotation = true;
  CHECK(grade("bank/till", kQuiet) == "quiet");
  CHECK(grade("bank/till", kUnknown) == "best-effort, unknown");
  CHECK(grade("shop/cart", kBestEffort) == "quiet, not allowed");
  settings.allow_grades = {Grade::kBestEffort};
  CHECK(grade("bank/till", kQuiet) == "best-effort, not allowed");
  CHECK(grade("shop/cart", kBestEffort) == "best-effort");
  settings.grade = Grade::kQuiet;
  CHECK(grade("bank/till", kNone) == "quiet");
  CHECK(grade("bank/till", kBestEffort) == "best-effort");
  CHECK(grade("bank/till", kRealtime) == "quiet, not allowed");
  settings.allow_grades = {Grade::kRealtime};
  CHECK(grade("bank/till", kRealtime) == "realtime");
  rules.realtime_namespaces = {"shop"};
  CHECK(grade("shop/cart", kNone) == "realtime");
  CHECK(grade("shop/cart", kQuiet) == "realtime, not allowed");
}

TEST_CASE("units on CPUs of a partition do not count") {
  QuietState state{.cpus = {2, 3}, .kinds = {{.kind = "unit"}}, .problem = {}};
  state.kinds[0].left = {{"init.scope", {2, 3}, "busy"}};
  CHECK(quiet_obstacle({2, 3}, state, {2, 3}) == std::nullopt);
  CHECK(quiet_obstacle({2, 3}, state, {2}) ==
        QuietObstacle{NotQuiet::kUnitLeft, "init.scope (busy)"});
}

TEST_CASE("a claim that would take the floor is refused, others are not") {
  CHECK(beside_floor({{"a", {2, 3}}, {"b", {6}}}, {0}) == "ab");
  CHECK(beside_floor({{"a", {0, 1}}, {"b", {4}}}, {0}) == "b");
}

TEST_CASE("without a floor the host keeps one core") {
  const Claims claims{{"a", {0, 1, 4, 5}}, {"b", {2, 3, 6}}, {"c", {7}}};
  CHECK(beside_floor(claims, {}) == "ac");
}

TEST_CASE("a CPU of the floor that is offline is not waited for") {
  CHECK(beside_floor({{"a", {2}}}, {0, 9}) == "a");
}

TEST_CASE("who has its CPUs keeps them before a newcomer") {
  const Claims claims{{"a", {0, 1, 2, 4, 5, 6}}, {"b", {2, 3, 6, 7}}};
  CHECK(beside_floor(claims, {}) == "a");
  CHECK(beside_floor(claims, {}, {2, 3, 6, 7}) == "b");
}

TEST_CASE("all is asked for at once, or one newcomer after the other") {
  const Claims claims{{"a", {1}}, {"b", {2, 3}}, {"c", {4}}};
  CHECK(next_request(claims, {}, false) == CpuSet{1, 2, 3, 4});
  CHECK(next_request(claims, {}, true) == CpuSet{1});
  CHECK(next_request(claims, {2, 3}, true) == CpuSet{1, 2, 3});
  CHECK(next_request(claims, {1, 2, 3}, true) == CpuSet{1, 2, 3, 4});
  CHECK(next_request({}, {1}, true).empty());
}

TEST_CASE("a sandbox is quiet when the host's units have left its CPUs") {
  QuietState state{.cpus = {2, 3, 4}, .kinds = {}, .problem = {}};
  CHECK(quiet_obstacle({2, 3}, state) == std::nullopt);
  CHECK(quiet_obstacle({4, 5}, state) == QuietObstacle{NotQuiet::kPending});
  state.kinds = {{.kind = "unit",
                  .found = 4,
                  .moved = 3,
                  .left = {{"user.slice", {4}, "slow"}, {"init.scope", {3, 4}, "busy"}},
                  .left_total = 2}};
  CHECK(quiet_obstacle({2}, state) == std::nullopt);
  CHECK(quiet_obstacle({3}, state) == QuietObstacle{NotQuiet::kUnitLeft, "init.scope (busy)"});
  CHECK(quiet_obstacle({4}, state) ==
        QuietObstacle{NotQuiet::kUnitLeft, "user.slice (slow), init.scope (busy)"});
  state.kinds[0].kind = "interrupt";
  CHECK(quiet_obstacle({4}, state) == std::nullopt);
  state.kinds[0] = {.kind = "unit", .left = {}, .problem = "it takes cgroup v2"};
  CHECK(quiet_obstacle({2}, state) == QuietObstacle{NotQuiet::kUnseen, "unit: it takes cgroup v2"});
  state.kinds[0] = {.kind = "interrupt", .left = {}, .problem = "no descriptors"};
  CHECK(quiet_obstacle({2}, state) ==
        QuietObstacle{NotQuiet::kUnseen, "interrupt: no descriptors"});
  state.kinds[0].kind = "irqbalance";
  CHECK(quiet_obstacle({2}, state) == std::nullopt);
  state.problem = "no record";
  CHECK(quiet_obstacle({2}, state) == QuietObstacle{NotQuiet::kProblem, "no record"});
}
