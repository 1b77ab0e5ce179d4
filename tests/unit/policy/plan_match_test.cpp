// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;

namespace {

/// Shared containers everywhere below live on CPU 0, so that something may float.
SandboxFacts beside_shared(std::vector<VcpuFacts> guest, std::vector<ContainerFacts> owners) {
  owners.push_back(shared("z", "0"));
  SandboxFacts facts = sandbox(0, std::move(owners));
  facts.vcpus = std::move(guest);
  return facts;
}

std::vector<VcpuFacts> on_nodes(std::vector<VcpuFacts> guest, const std::vector<int>& nodes) {
  for (std::size_t i = 0; i < guest.size(); ++i) guest[i].numa = nodes[i];
  return guest;
}

}  // namespace

TEST_CASE("guest siblings lie on host siblings") {
  // Host cores: n and n + 8. Guest cores: 0,1 and 2,3 and so on.
  Case c{.topology = machine(1, 8, 2)};
  SECTION("the first core floats as a whole") {
    c.facts = beside_shared(vcpus(6, 2), {owner("a", "2-3,10-11")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:0 2:2! 3:10! 4:3! 5:11!");
  }
  SECTION("only one may float: vCPU 0, and its sibling is alone") {
    c.facts = beside_shared(vcpus(6, 2), {owner("a", "2-3,10-11"), owner("b", "5")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:5! 2:2! 3:10! 4:3! 5:11!");
  }
  SECTION("three float: no second core is broken unnecessarily") {
    c.facts = beside_shared(vcpus(7, 2), {owner("a", "2-3,10-11")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:0 2:2! 3:10! 4:3! 5:11! 6:0");
  }
  SECTION("a core with one thread of the container gets a leftover vCPU") {
    c.facts = beside_shared(vcpus(6, 2), {owner("a", "2,3,11")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:0 2:3! 3:11! 4:2! 5:0");
  }
  SECTION("guest cores with four threads on host cores with two") {
    c.facts = beside_shared(vcpus(8, 4), {owner("a", "2-3,10-11")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:0 2:0 3:0 4:2! 5:10! 6:3! 7:11!");
  }
  CHECK(c.broken(c.plan()) == "");
}

TEST_CASE("guest nodes lie on host nodes") {
  // Node 0: CPUs 0-3, node 1: 4-7, node 2: 8-11.
  Case c{.topology = machine(3, 4, 1)};
  SECTION("one each, in any order of the CPUs") {
    c.facts = beside_shared(on_nodes(vcpus(7), {0, 0, 0, 0, 1, 1, 1}), {owner("a", "1-3,8-10")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:1! 2:2! 3:3! 4:8! 5:9! 6:10!");
  }
  SECTION("the larger guest node takes the host node with more CPUs") {
    c.facts = beside_shared(on_nodes(vcpus(6), {0, 0, 1, 1, 1, 1}), {owner("a", "1,8-11")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:1! 2:8! 3:9! 4:10! 5:11!");
  }
  SECTION("the node of a container decides which vCPUs float") {
    c.facts = beside_shared(on_nodes(vcpus(8), {0, 0, 0, 0, 1, 1, 1, 1}), {owner("a", "4-7")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:0 2:0 3:0 4:4! 5:5! 6:6! 7:7!");
  }
  CHECK(c.broken(c.plan()) == "");
}

TEST_CASE("vCPUs that do not fit on their node go to the nearest one") {
  std::vector<Cpu> list = cpu_list(3, 4, 1);
  const Topology topology =
      Topology::make(list, {{10, 40, 20}, {40, 10, 40}, {20, 40, 10}}).value();
  Case c{.topology = topology};
  c.facts =
      beside_shared(on_nodes(vcpus(8), {0, 0, 0, 0, 0, 0, 1, 1}), {owner("a", "1-3,4-5,8-9")});
  // Guest node 0 has five left for the three CPUs of host node 0: two go to node 2, not to node 1.
  CHECK(vcpu_line(c.plan()) == "0:0 1:1! 2:2! 3:3! 4:8! 5:9! 6:4! 7:5!");
  CHECK(c.broken(c.plan()) == "");
}

TEST_CASE("hotplugged vCPUs may have any index") {
  Case c{.facts = beside_shared(vcpus(3), {owner("a", "2-3")})};
  c.facts.vcpus[1].index = 6;
  c.facts.vcpus[2].index = 7;
  CHECK(vcpu_line(c.plan()) == "0:0 6:2! 7:3!");
  CHECK(container_line(c.plan()) == "a:6-7! z:0");
}

TEST_CASE("a container keeps its vCPUs while others come and go") {
  Case c{.facts = beside_shared(vcpus(8), {owner("a", "2-3"), owner("b", "4-5")})};
  SandboxPlan plan = c.plan();
  REQUIRE(vcpu_line(plan) == "0:0 1:2! 2:3! 3:4! 4:5! 5:0 6:0 7:0");
  SECTION("one goes, another comes") {
    c.facts = beside_shared(vcpus(8), {owner("b", "4-5")});
    plan = c.plan(&plan);
    CHECK(vcpu_line(plan) == "0:0 1:0 2:0 3:4! 4:5! 5:0 6:0 7:0");
    CHECK(find_note(plan.reasons, Code::kKeptFromBefore)->subject == "b");
    c.facts = beside_shared(vcpus(8), {owner("aa", "6-7"), owner("b", "4-5")});
    plan = c.plan(&plan);
    CHECK(vcpu_line(plan) == "0:0 1:6! 2:7! 3:4! 4:5! 5:0 6:0 7:0");
  }
  SECTION("it is recreated under another id") {
    c.facts = beside_shared(vcpus(8), {owner("0new", "4-5"), owner("a", "2-3")});
    c.facts.containers[0].name = "name-b";
    plan = c.plan(&plan);
    CHECK(vcpu_line(plan) == "0:0 1:2! 2:3! 3:4! 4:5! 5:0 6:0 7:0");
    CHECK(container_line(plan) == "0new:3-4! a:1-2! z:0,5-7");
  }
  SECTION("it grows: previous assignments stay") {
    c.facts = beside_shared(vcpus(8), {owner("a", "1-3,7"), owner("b", "4-5")});
    plan = c.plan(&plan);
    CHECK(container_line(plan) == "a:1-2,5-6! b:3-4! z:0,7");
    CHECK(vcpu_line(plan).starts_with("0:0 1:2! 2:3! 3:4! 4:5!"));
  }
  SECTION("a CPU that changes owner does not take its vCPU along") {
    c.facts = beside_shared(vcpus(8), {owner("a", "4-5"), owner("b", "2-3")});
    plan = c.plan(&plan);
    CHECK(vcpu_line(plan) == "0:0 1:4! 2:5! 3:2! 4:3! 5:0 6:0 7:0");
  }
  SECTION("a vCPU is unplugged") {
    c.facts.vcpus.erase(c.facts.vcpus.begin() + 3);
    plan = c.plan(&plan);
    CHECK(vcpu_line(plan) == "0:0 1:2! 2:3! 4:5! 5:4! 6:0 7:0");
  }
  CHECK(c.broken(plan) == "");
  CHECK(c.plan(&plan) == plan);
}

TEST_CASE("vCPUs plugged one by one end as if present from the start") {
  Case c;
  SandboxPlan plan;
  for (int count = 1; count <= 6; ++count) {
    c.facts = beside_shared(vcpus(count), {owner("a", "2-3"), owner("b", "4-5")});
    plan = c.plan(&plan);
    INFO(count);
    CHECK(c.broken(plan) == "");
  }
  // vCPU 0 was dedicated as long as there were not enough; it is the first to float again.
  CHECK(plan.vcpus[0].role == VcpuRole::kFloating);
  CHECK(plan.containers[0].dedicated);
  CHECK(plan.containers[1].dedicated);
}

TEST_CASE("a group keeps its vCPUs, too") {
  Case c{.facts = beside_shared(vcpus(4), {owner("a", "1-2"), owner("b", "3-6")})};
  SandboxPlan plan = c.plan();
  REQUIRE(vcpu_line(plan) == "0:1-2(a) 1:3-6(b) 2:3-6(b) 3:3-6(b)");
  c.facts = beside_shared(vcpus(4), {owner("b", "3-6"), owner("c", "1-2")});
  CHECK(container_line(c.plan()) == "b:0-2 c:3 z:3");
  plan = c.plan(&plan);
  CHECK(container_line(plan) == "b:1-3 c:0 z:0");
  CHECK(c.plan(&plan) == plan);
}

TEST_CASE("guest siblings that became separated are swapped together") {
  // Before, the container had one thread of each of two cores; now it has both cores.
  Case c{.topology = machine(1, 8, 2)};
  c.facts = beside_shared(vcpus(4, 2), {owner("a", "2-3")});
  const SandboxPlan before = c.plan();
  REQUIRE(vcpu_line(before) == "0:0 1:0 2:2! 3:3!");
  c.facts = beside_shared(vcpus(6, 2), {owner("a", "2-3,10-11")});
  const SandboxPlan plan = c.plan(&before);
  CHECK(container_line(plan) == "a:2-5! z:0-1");
  CHECK(c.broken(plan) == "");
}
