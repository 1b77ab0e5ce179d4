// SPDX-License-Identifier: Apache-2.0
// What vCPUs and a sandbox get of the resource classes that containers ask for.
#include "policy/plan/resource_classes.hpp"

#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;

namespace {

constexpr const char* kScheduling = "scheduling-class.resource-policy.nri.io";
constexpr const char* kBlockIo = "blockioclass.resource-policy.nri.io";

const Topology kMachine = machine(1, 8, 1);

ResourceClasses classes() {
  return {.by_name = {{"fast", {.nice = -5, .io_weight = 500}},
                      {"slow", {.nice = 10, .io_weight = {}}}},
          .by_annotation = {ClassKind::kScheduling, ClassKind::kBlockIo}};
}

ClassPlan planned(const SandboxFacts& facts, const Annotations& annotations,
                  const ResourceClasses& given = classes()) {
  const NodeView view{kMachine, kMachine.online(), {}, {}};
  return plan_classes(plan_sandbox(view, facts, at_home(), nullptr), facts.containers, annotations,
                      given);
}

std::string of(const char* key, const std::string& container) {
  return std::string(key) + "/container.name-" + container;
}

/// "a:shared b:granted"
std::string answers(const ClassPlan& plan) {
  std::string text;
  for (const RequestedClass& request : plan.requests) {
    text += (text.empty() ? "" : " ") + request.container + ':' +
            (request.refusal ? std::string(refusal_name(*request.refusal)) : "granted");
  }
  return text;
}

using Nice = std::map<int, int>;

}  // namespace

TEST_CASE("a class is asked for by container, by pod, or for all, in this order") {
  const std::string key = kScheduling;
  Annotations annotations{{key, "all"}, {key + "/pod", "pod"}, {key + "/container.app", "own"}};
  const auto request = [&](const char* container) {
    return requested_class_of(annotations, ClassKind::kScheduling, container).value_or("none");
  };
  CHECK(request("app") == "own");
  CHECK(request("db") == "pod");
  annotations.erase(key + "/pod");
  CHECK(request("db") == "all");
  annotations.erase(key);
  CHECK(request("db") == "none");
  CHECK_FALSE(requested_class_of(annotations, ClassKind::kBlockIo, "app"));
}

TEST_CASE("only these annotations ask for a class") {
  CHECK(is_class_request("blockioclass.resource-policy.nri.io"));
  CHECK(is_class_request("scheduling-class.resource-policy.nri.io/pod"));
  CHECK(is_class_request("scheduling-class.resource-policy.nri.io/container.app"));
  CHECK_FALSE(is_class_request("scheduling-class.resource-policy.nri.io/pods"));
  CHECK_FALSE(is_class_request("scheduling-class.resource-policy.nri.ios"));
  CHECK_FALSE(is_class_request("kata-affinity.io/environment"));
}

TEST_CASE("the vCPUs of a container get its nice value, and no other vCPU does") {
  const auto facts = sandbox(5, {owner("a", "2-3"), owner("b", "5"), shared("c", "0-1")});
  const ClassPlan plan =
      planned(facts, {{of(kScheduling, "a"), "fast"}, {of(kScheduling, "b"), "slow"}});
  CHECK(answers(plan) == "a:granted b:granted");
  CHECK(plan.nice.size() == 3);
  CHECK(std::ranges::count(plan.nice, -5, &Nice::value_type::second) == 2);
  CHECK_FALSE(plan.io_weight);
}

TEST_CASE("containers that share vCPUs must agree") {
  const auto facts = sandbox(2, {shared("a", "1-2"), shared("b", "1-2")});
  CHECK(planned(facts, {{kScheduling, "slow"}}).nice == Nice{{0, 10}, {1, 10}});
  const ClassPlan torn = planned(facts, {{of(kScheduling, "a"), "slow"}});
  CHECK(torn.nice.empty());
  CHECK(answers(torn) == "a:shared");
}

TEST_CASE("a sandbox gets the weight on which all its containers agree") {
  auto facts = sandbox(3, {owner("a", "2-3"), shared("b", "0-1")});
  CHECK(planned(facts, {{kBlockIo, "fast"}}).io_weight == 500);
  const ClassPlan torn = planned(facts, {{of(kBlockIo, "a"), "fast"}});
  CHECK_FALSE(torn.io_weight);
  CHECK(answers(torn) == "a:shared");
  facts.containers[1].exited = true;
  CHECK(planned(facts, {{of(kBlockIo, "a"), "fast"}}).io_weight == 500);
}

TEST_CASE("limits of block I/O are part of what all containers agree on") {
  const auto facts = sandbox(3, {owner("a", "2-3"), shared("b", "0-1")});
  ResourceClasses limited = classes();
  limited.by_name["fast"].io_max = {{"8:0", "rbps=max wbps=1 riops=max wiops=max"}};
  limited.by_name["slow"].io_max = limited.by_name["fast"].io_max;
  const ClassPlan plan = planned(facts, {{kBlockIo, "fast"}}, limited);
  CHECK(plan.io_max == limited.by_name["fast"].io_max);
  CHECK(plan.io_weight == 500);
  const ClassPlan alone = planned(facts, {{kBlockIo, "slow"}}, limited);
  CHECK(alone.io_max == plan.io_max);
  CHECK_FALSE(alone.io_weight);
  const ClassPlan torn = planned(facts, {{kBlockIo, "fast"}, {of(kBlockIo, "a"), "slow"}}, limited);
  CHECK(torn.io_max.empty());
  CHECK(answers(torn) == "a:shared b:shared");
}

TEST_CASE("a class that cannot be had is refused with the reason") {
  const auto facts = sandbox(2, {owner("a", "2")});
  CHECK(answers(planned(facts, {{kScheduling, "gold"}})) == "a:unknown");
  CHECK(answers(planned(facts, {{kBlockIo, "slow"}})) == "a:no-value");
  ResourceClasses closed = classes();
  closed.by_annotation = {ClassKind::kBlockIo};
  const ClassPlan plan = planned(facts, {{kScheduling, "fast"}, {kBlockIo, "fast"}}, closed);
  CHECK(answers(plan) == "a:not-allowed a:granted");
  CHECK(plan.nice.empty());
  CHECK(plan.io_weight == 500);
}

TEST_CASE("a vCPU that serves no container keeps its nice value") {
  const auto facts = sandbox(4, {owner("a", "2-3")});  // 2 more float
  CHECK(planned(facts, {{kScheduling, "fast"}}).nice.size() == 2);
  CHECK(planned(facts, {}) == ClassPlan{});
}

TEST_CASE("the vCPUs of a container get its RDT class by name, where all that they serve agree") {
  constexpr const char* kRdt = "rdtclass.resource-policy.nri.io";
  ResourceClasses given = classes();
  given.by_name["fast"].rdt.l3 = parse_cache_share("50%");
  given.by_annotation = {ClassKind::kRdt};
  const auto facts = sandbox(5, {owner("a", "2-3"), owner("b", "5"), shared("c", "0-1")});
  const ClassPlan plan = planned(facts, {{of(kRdt, "a"), "fast"}, {of(kRdt, "b"), "slow"}}, given);
  CHECK(answers(plan) == "a:granted b:no-value");
  CHECK(plan.rdt.size() == 2);
  CHECK(std::ranges::all_of(plan.rdt, [](const auto& vcpu) { return vcpu.second == "fast"; }));
  CHECK(plan.nice.empty());
  given.by_annotation = {ClassKind::kBlockIo};
  CHECK(answers(planned(facts, {{of(kRdt, "a"), "fast"}}, given)) == "a:not-allowed");
}

TEST_CASE("exclusive containers that request no RDT class have that of their grade") {
  constexpr const char* kRdt = "rdtclass.resource-policy.nri.io";
  ResourceClasses given = classes();
  given.by_name["fast"].rdt.l3 = parse_cache_share("50%");
  given.by_name["slow"].rdt.l3 = parse_cache_share("10%");
  const auto facts = sandbox(5, {owner("a", "2-3"), owner("b", "5"), shared("c", "0-1")});
  const auto of_grade = [&](const Annotations& annotations) {
    const NodeView view{kMachine, kMachine.online(), {}, {}};
    return plan_classes(plan_sandbox(view, facts, at_home(), nullptr), facts.containers,
                        annotations, given, "fast");
  };
  CHECK(answers(of_grade({})) == "a:granted b:granted");
  CHECK(of_grade({}).rdt.size() == 3);
  CHECK(of_grade({}).nice.empty());
  CHECK(answers(of_grade({{of(kRdt, "a"), "slow"}})) == "a:not-allowed b:granted");
  given.by_annotation = {ClassKind::kRdt};
  const ClassPlan plan = of_grade({{of(kRdt, "a"), "slow"}});
  CHECK(answers(plan) == "a:granted b:granted");
  CHECK(std::ranges::count(plan.rdt, "slow", [](const auto& vcpu) { return vcpu.second; }) == 2);
}
