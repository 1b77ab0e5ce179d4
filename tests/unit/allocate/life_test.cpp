// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/life.hpp"

#include "tests/catch.hpp"
#include "tests/machines.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

using Containers = std::vector<PodContainer>;

Containers app(int cpus) {
  return {{.name = "c", .request = {.use = CpuUse::kExclusive, .cpus = cpus}}};
}

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

TEST_CASE("the topology manager's policy decides on a pod that no node holds") {
  const std::string locality = "Resources cannot be allocated with Topology locality";
  CHECK(refusal_of(HintPolicy::kNone, 5) == "admitted");
  CHECK(refusal_of(HintPolicy::kBestEffort, 5) == "admitted");
  CHECK(refusal_of(HintPolicy::kRestricted, 5) == "admitted");
  CHECK(refusal_of(HintPolicy::kSingleNumaNode, 5) == locality);
  CHECK(refusal_of(HintPolicy::kSingleNumaNode, 4) == "admitted");
}

TEST_CASE("a container is counted as split where an empty machine would not have split it") {
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
