// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/life.hpp"

#include "tests/catch.hpp"
#include "tests/machines.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

using Containers = std::vector<PodContainer>;

PodContainer container(const std::string& name, PodPart part, int cpus) {
  return {name, part, {.use = CpuUse::kExclusive, .cpus = cpus}};
}

Containers app(int cpus) { return {container("c", PodPart::kApp, cpus)}; }

/// Two nodes of two cores with two threads each.
Machine two_nodes() { return Machine(ka::test::grid_machine({.sockets = 2, .cores_per_node = 2})); }

Life life_on(const Machine& machine, HintPolicy policy) {
  return {machine, Holdings(machine, {}, {}, packed_policy(), {.policy = policy}),
          Life::InitCpus::kFreed};
}

std::string refusal_of(HintPolicy policy, int cpus) {
  const Machine machine = two_nodes();
  Life life = life_on(machine, policy);
  const auto got = life.add("p", app(cpus));
  if (got) return "admitted";
  CHECK(life.books().all().empty());
  CHECK(life.toll().refused == 1);
  return refusal_text(got.error());
}

}  // namespace

TEST_CASE("the topology manager's policy decides about a pod that fits on no node") {
  const std::string locality = "Resources cannot be allocated with Topology locality";
  CHECK(refusal_of(HintPolicy::kNone, 5) == "admitted");
  CHECK(refusal_of(HintPolicy::kBestEffort, 5) == "admitted");
  CHECK(refusal_of(HintPolicy::kRestricted, 5) == "admitted");
  CHECK(refusal_of(HintPolicy::kSingleNumaNode, 5) == locality);
  CHECK(refusal_of(HintPolicy::kSingleNumaNode, 4) == "admitted");
}

TEST_CASE(
    "in pod scope one node holds sidecars and apps, or the larger of init containers and these") {
  const Machine machine = two_nodes();
  const auto admits = [&machine](int init, int sidecar, int app) {
    Life life(machine,
              Holdings(machine, {}, {}, packed_policy(),
                       {.policy = HintPolicy::kSingleNumaNode, .pod_scope = true}),
              Life::InitCpus::kFreed);
    Containers pod;
    if (init > 0) pod.push_back(container("i", PodPart::kInit, init));
    if (sidecar > 0) pod.push_back(container("s", PodPart::kSidecar, sidecar));
    pod.push_back(container("c", PodPart::kApp, app));
    return life.add("p", pod).has_value();
  };
  CHECK(admits(4, 0, 3));
  CHECK(admits(0, 1, 3));
  CHECK(admits(4, 1, 3));
  CHECK_FALSE(admits(0, 2, 3));
  CHECK_FALSE(admits(5, 0, 1));
}

TEST_CASE("in pod scope a pod that owns no CPU fits on a full machine") {
  const Machine machine = two_nodes();
  Life life(machine,
            Holdings(machine, {0}, {}, packed_policy(),
                     {.policy = HintPolicy::kSingleNumaNode, .pod_scope = true}),
            Life::InitCpus::kFreed);
  REQUIRE(life.add("a", app(4)));
  REQUIRE(life.add("b", app(3)));
  REQUIRE_FALSE(life.add("c", app(1)).has_value());
  const PodContainer shared{"c", PodPart::kApp, {.use = CpuUse::kNone, .cpus = 0}};
  CHECK(life.add("d", Containers{shared}).has_value());
}

TEST_CASE("a container counts as split only if an empty machine would not have split it") {
  const Machine machine = two_nodes();
  Life life = life_on(machine, HintPolicy::kNone);
  REQUIRE(life.add("breaks-core", app(3)));
  REQUIRE(life.add("whole-core", app(2)));
  CHECK(life.toll().split_cores == 1);
  CHECK(life.toll().split_nodes == 0);
  REQUIRE(life.add("spans", app(3)));
  CHECK(life.toll().containers == 3);
  CHECK(life.toll().split_cores == 1);
  CHECK(life.toll().split_nodes == 1);
  CHECK(life.toll().split_sockets == 1);
  CHECK_FALSE(life.add("late", app(1)));
  CHECK(life.toll().refused == 1);
}

TEST_CASE("a container that would fill one node counts as split over two") {
  const Machine machine = two_nodes();
  Life life = life_on(machine, HintPolicy::kNone);
  for (const char* pod : {"a", "b", "c"}) REQUIRE(life.add(pod, app(2)));
  REQUIRE(life.remove("a"));
  REQUIRE(life.add("on-both", app(4)));
  CHECK(life.toll().split_nodes == 1);
}

TEST_CASE("a pod is admitted once, and requires a name") {
  const Machine machine = two_nodes();
  Life life = life_on(machine, HintPolicy::kNone);
  const auto got = life.add("p", app(2));
  REQUIRE(got);
  CHECK(got->at("c").size() == 2);
  const auto again = life.add("p", app(1));
  REQUIRE_FALSE(again);
  CHECK(refusal_text(again.error()) == "exists already");
  CHECK_FALSE(life.add("", app(1)));
  CHECK(life.remove("p"));
  CHECK_FALSE(life.remove("p"));
  CHECK(life.add("p", app(1)));
}
