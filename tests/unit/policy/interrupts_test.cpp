// SPDX-License-Identifier: Apache-2.0
// Where the interrupts of passed-through devices go.
#include "policy/plan/interrupts.hpp"

#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;

namespace {

/// Two nodes of four CPUs each: 0-3 and 4-7.
const Topology kMachine = machine(2, 4, 1);

std::string sent_to(SandboxFacts facts, int node = -1, const Settings& settings = at_home(),
                    const CpuSet& others = {}) {
  facts.devices = {{"0000:01:00.0", node}};
  const NodeView view{kMachine, kMachine.online() - others, others, {}};
  const SandboxPlan plan = plan_sandbox(view, facts, settings, nullptr);
  CHECK(check_plan(view, facts, settings, plan).empty());
  const auto found = plan.interrupts.find("0000:01:00.0");
  return found == plan.interrupts.end() ? "alone" : format_list(found->second);
}

}  // namespace

TEST_CASE("interrupts go to the vCPUs of exclusive containers") {
  CHECK(sent_to(sandbox(3, {owner("a", "2-3")})) == "2-3");
  CHECK(sent_to(sandbox(5, {owner("a", "2-3"), owner("b", "5"), shared("c", "0-1")})) == "2-3,5");
  CHECK(sent_to(sandbox(1, {owner("a", "2-3")})) == "2-3");  // as a group
}

TEST_CASE("without an exclusive container they go to all vCPUs") {
  CHECK(sent_to(sandbox(2, {shared("a", "1-2")})) == "1-2");
  CHECK(sent_to(sandbox(2, {})) == "0-7");
}

TEST_CASE("interrupts stay on their device's node if a vCPU is there") {
  const SandboxFacts both = sandbox(4, {owner("a", "2-5")});
  CHECK(sent_to(both) == "2-5");
  CHECK(sent_to(both, 0) == "2-3");
  CHECK(sent_to(both, 1) == "4-5");
  CHECK(sent_to(sandbox(3, {owner("a", "2-3")}), 1) == "2-3");
  CHECK(sent_to(both, 9) == "2-5");  // a node that the machine does not have
}

TEST_CASE("interrupts never go to CPUs of another pod") {
  CHECK(sent_to(sandbox(2, {shared("a", "1-3")}), -1, at_home(), {3}) == "1-2");
  CHECK(sent_to(sandbox(2, {shared("a", "3")}), -1, at_home(), CpuSet::range(0, 7)) == "alone");
}

TEST_CASE("interrupts are left alone with vcpu_pinning = none, or without vCPUs") {
  CHECK(sent_to(sandbox(2, {shared("a", "1-2")}), -1, pinning(VcpuPinning::kNone)) == "alone");
  CHECK(sent_to(sandbox(0, {shared("a", "1-2")})) == "alone");
}

TEST_CASE("interrupts follow a manually pinned vCPU") {
  SandboxFacts moved = sandbox(3, {owner("a", "2-3")});
  moved.overrides = {{Role::kVcpu, 1, {}, {6}}};
  CHECK(sent_to(moved) == "3,6");
}

TEST_CASE("a plan that routes interrupts elsewhere violates the invariants") {
  SandboxFacts facts = sandbox(3, {owner("a", "2-3")});
  facts.devices = {{"0000:01:00.0"}};
  const NodeView view{kMachine, cpus("0-6"), {7}, {}};
  SandboxPlan plan = plan_sandbox(view, facts, {}, nullptr);
  plan.interrupts["0000:01:00.0"] = {7};
  const auto found = check_plan(view, facts, {}, plan);
  REQUIRE(found.size() == 2);
  CHECK(found[0].breach == Breach::kForeignCpu);
  CHECK(found[0].subject == "interrupts of 0000:01:00.0");
  CHECK(found[1].breach == Breach::kOutside);
}
