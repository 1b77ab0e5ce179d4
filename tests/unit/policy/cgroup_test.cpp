// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/cgroup.hpp"

#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

TEST_CASE("our own cgroup allows the mask, housekeeping, and nothing of other pods") {
  const Topology machine = scenario::machine(1, 8, 1);
  SandboxFacts sandbox = scenario::sandbox(3, {scenario::owner("c", "2-4")});
  const NodeView node{machine, scenario::cpus("0-1,5"), scenario::cpus("4,6-7"), {}};
  const Settings settings = scenario::keeping_house(Housekeeping::Kind::kSharedPool);
  CHECK(plan_sandbox(node, sandbox, settings, nullptr).cgroup.empty());
  sandbox.cgroup_writable = true;
  CHECK(format_list(plan_sandbox(node, sandbox, settings, nullptr).cgroup) == "0-3,5");
  CHECK(format_list(plan_sandbox(node, sandbox, scenario::at_home(), nullptr).cgroup) == "2-3");
  sandbox.overrides = {{.role = Role::kEmulator, .cpus = {5}}};
  CHECK(format_list(plan_sandbox(node, sandbox, scenario::at_home(), nullptr).cgroup) == "2-3,5");
  sandbox.cgroup_by_role = {{Role::kEmulator, CpuSet::range(0, 7)}};  // it is not inside
  CHECK(format_list(plan_sandbox(node, sandbox, scenario::at_home(), nullptr).cgroup) == "2-3");
}

TEST_CASE("a cpuset allows its intersection with its parent, or all of the parent") {
  CHECK(Cpuset{{2, 3}, {0, 1, 2}}.effective() == CpuSet{2});
  CHECK(Cpuset{{}, {0, 1}}.effective() == CpuSet{0, 1});
  CHECK(Cpuset{{3}, {0, 1}}.effective() == CpuSet{0, 1});
}

TEST_CASE("a cgroup is widened to the planned CPUs, without those of others") {
  const Cpuset now{{2, 3}, CpuSet::range(0, 7)};
  CHECK(widened(now, {2}, {}) == std::nullopt);
  CHECK(widened(now, {0, 1}, {}) == CpuSet{0, 1, 2, 3});
  CHECK(widened(now, {0, 1}, {3}) == CpuSet{0, 1, 2});
  CHECK(widened(now, {2}, {3}) == CpuSet{2});
  CHECK(widened(now, {}, {3}) == std::nullopt);
  CHECK(widened({{}, CpuSet::range(0, 3)}, {1}, {0}) == CpuSet{1, 2, 3});
}

TEST_CASE("a cgroup is narrowed to the planned CPUs, unless it has just these") {
  const Cpuset now{{2, 3}, CpuSet::range(0, 7)};
  CHECK(narrowed(now, {2}) == CpuSet{2});
  CHECK(narrowed(now, {2, 3}) == std::nullopt);
  CHECK(narrowed(now, {}) == std::nullopt);
  CHECK(narrowed({{}, {2, 3}}, {2, 3}) == std::nullopt);
}

TEST_CASE("a restored cgroup has what others wrote, without CPUs of other pods") {
  const Cpuset now{{0, 1, 2}, CpuSet::range(0, 3)};
  CHECK(given_back(now, {2, 3}, {}) == CpuSet{2, 3});
  CHECK(given_back(now, {}, {}) == CpuSet{});
  CHECK(given_back(now, {2, 3}, {3}) == CpuSet{2});
  CHECK(given_back(now, {}, {3}) == CpuSet{0, 1, 2});
  CHECK(given_back(now, {3}, {3}) == CpuSet{0, 1, 2});
}
