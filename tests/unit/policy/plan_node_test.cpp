// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/node_invariants.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;

namespace {

SandboxFacts named(const std::string& id, const std::string& uid, SandboxFacts facts) {
  facts.id = id;
  facts.pod_uid = uid;
  return facts;
}

Snapshot node(std::vector<SandboxFacts> sandboxes) {
  Snapshot snapshot;
  snapshot.topology = machine(1, 8, 1);
  snapshot.sandboxes = std::move(sandboxes);
  return snapshot;
}

}  // namespace

TEST_CASE("every sandbox sees the CPUs of the others as foreign") {
  Snapshot snapshot = node({named("s1", "u1", sandbox(2, {owner("a", "2")})),
                            named("s2", "u2", sandbox(1, {shared("b", "0-7")}))});
  snapshot.exclusive_elsewhere = cpus("6-7");
  const std::vector<NodeView> views = node_views(snapshot);
  CHECK(format_list(views[0].exclusive_to_others) == "6-7");
  CHECK(format_list(views[1].exclusive_to_others) == "2,6-7");
  CHECK(format_list(views[1].shared_pool) == "0-1,3-5");
  const Plan made = plan::plan(snapshot, at_home(), nullptr);
  CHECK(vcpu_line(*made.find("s2")) == "0:0-1,3-5");
  CHECK(made.find("s3") == nullptr);
  CHECK(violation_line(ka::tests::check_node(snapshot, at_home(), made)) == "");
}

TEST_CASE("a CPU that two pods claim is used by neither") {
  Snapshot snapshot = node({named("s1", "u1", sandbox(3, {owner("a", "2-3")})),
                            named("s2", "u2", sandbox(3, {owner("b", "3-4")})),
                            named("s3", "u3", sandbox(2, {owner("c", "6")}))});
  snapshot.exclusive_elsewhere = cpus("6");
  const Plan made = plan::plan(snapshot, at_home(), nullptr);
  for (const SandboxPlan& sandbox : made.sandboxes) {
    CHECK(find_note(sandbox.warnings, Code::kCpusContested) != nullptr);
    for (const VcpuPlan& vcpu : sandbox.vcpus) CHECK_FALSE(vcpu.cpus.intersects(cpus("3,6")));
  }
  CHECK(violation_line(ka::tests::check_node(snapshot, at_home(), made)) == "");
}

TEST_CASE("the CPUs of an exited container stay reserved to its pod") {
  SandboxFacts first = sandbox(2, {owner("a", "2"), shared("x", "0")});
  first.containers[0].exited = true;
  const Snapshot snapshot =
      node({named("s1", "u1", first), named("s2", "u2", sandbox(1, {shared("b", "0-3")}))});
  CHECK(vcpu_line(*plan::plan(snapshot, at_home(), nullptr).find("s2")) == "0:0-1,3");
}

TEST_CASE("a reported shared pool does not extend over exclusive CPUs") {
  Snapshot snapshot = node({named("s1", "u1", sandbox(2, {owner("a", "2")}))});
  snapshot.shared_pool = cpus("0-2");
  CHECK(format_list(node_views(snapshot)[0].shared_pool) == "0-1");
}

TEST_CASE("a pod is recognized by its uid, or without one by its id") {
  const auto facts = [](const std::string& first, const std::string& uid) {
    return node({named(first, uid, sandbox(4, {owner("b", "4"), shared("z", "0")}))});
  };
  Plan before = plan::plan(facts("s1", "u1"), {}, nullptr);
  std::swap(before.sandboxes[0].vcpus[1].cpus, before.sandboxes[0].vcpus[3].cpus);
  std::swap(before.sandboxes[0].vcpus[1].role, before.sandboxes[0].vcpus[3].role);
  std::swap(before.sandboxes[0].vcpus[1].container, before.sandboxes[0].vcpus[3].container);
  before.sandboxes[0].containers[0].vcpus = {3};
  const std::string kept = "0:0 1:0 2:0 3:4!";
  CHECK(vcpu_line(plan::plan(facts("s9", "u1"), at_home(), &before).sandboxes[0]) == kept);
  CHECK(vcpu_line(plan::plan(facts("s1", ""), at_home(), &before).sandboxes[0]) == kept);
  CHECK(vcpu_line(plan::plan(facts("s9", "u9"), at_home(), &before).sandboxes[0]) ==
        "0:0 1:4! 2:0 3:0");
}

TEST_CASE("balanced spreads the floating vCPUs of all sandboxes") {
  const Snapshot snapshot = node({named("s1", "u1", sandbox(2, {shared("a", "0-3")})),
                                  named("s2", "u2", sandbox(2, {shared("b", "0-3")}))});
  const Settings settings = pinning(VcpuPinning::kBalanced);
  const Plan made = plan::plan(snapshot, settings, nullptr);
  CHECK(vcpu_line(made.sandboxes[0]) == "0:0 1:1");
  CHECK(vcpu_line(made.sandboxes[1]) == "0:2 1:3");
  CHECK(plan::plan(snapshot, settings, &made) == made);
}

TEST_CASE("balanced: a vCPU stays where no CPU has less load, whoever comes and goes") {
  const Settings settings = pinning(VcpuPinning::kBalanced);
  const auto s2 = named("s2", "u2", sandbox(2, {shared("b", "0-3")}));
  const auto s3 = named("s3", "u3", sandbox(2, {shared("c", "0-3")}));
  const Plan two = plan::plan(node({s2, s3}), settings, nullptr);
  CHECK(vcpu_line(two.sandboxes[0]) == "0:0 1:1");
  CHECK(vcpu_line(two.sandboxes[1]) == "0:2 1:3");
  // s1 is planned first, and takes no CPU from the others.
  const auto s1 = named("s1", "u1", sandbox(2, {shared("a", "0-3")}));
  const Plan three = plan::plan(node({s1, s2, s3}), settings, &two);
  CHECK(three.sandboxes[1] == two.sandboxes[0]);
  CHECK(three.sandboxes[2] == two.sandboxes[1]);
  // An owner takes CPU 0: of three vCPUs there and elsewhere only those on it move.
  const auto taker = named("s4", "u4", sandbox(1, {owner("d", "0")}));
  const Plan owned = plan::plan(node({s2, s3, taker}), settings, &two);
  CHECK(vcpu_line(owned.sandboxes[0]) == "0:1 1:1");
  CHECK(owned.sandboxes[1].vcpus == two.sandboxes[1].vcpus);
  // It goes: one of the two that share a CPU has it for itself.
  const Plan after = plan::plan(node({s2, s3}), settings, &owned);
  CHECK(vcpu_line(after.sandboxes[0]) == "0:0 1:1");
  CHECK(after.sandboxes[1].vcpus == two.sandboxes[1].vcpus);
}

TEST_CASE("balanced: sandboxes with room elsewhere make way") {
  // s2 may only use the CPUs that s1, planned first, has taken.
  const Snapshot snapshot = node({named("s1", "u1", sandbox(2, {shared("a", "0-3")})),
                                  named("s2", "u2", sandbox(2, {shared("b", "0-1")}))});
  const Plan made = plan::plan(snapshot, pinning(VcpuPinning::kBalanced), nullptr);
  CHECK(vcpu_line(made.sandboxes[0]) == "0:2 1:3");
  CHECK(vcpu_line(made.sandboxes[1]) == "0:0 1:1");
}

TEST_CASE("balanced: a sandbox is crowded by what floats, not by vCPUs that serve a container") {
  const auto topology = *Topology::make({{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}});
  const NodeView view{
      .topology = topology, .shared_pool = {}, .exclusive_to_others = {}, .floating_load = {3, 0}};
  SandboxPlan plan;
  plan.housekeeping = {0, 1};
  plan.vcpus = {{.index = 0, .cpus = {0}, .role = VcpuRole::kFloating, .container = {}}};
  CHECK(crowded(view, plan));
  plan.vcpus[0].cpus = {1};
  CHECK_FALSE(crowded(view, plan));
  plan.vcpus[0] = {.index = 0, .cpus = {0}, .role = VcpuRole::kFloating, .container = "c"};
  CHECK_FALSE(crowded(view, plan));
}
