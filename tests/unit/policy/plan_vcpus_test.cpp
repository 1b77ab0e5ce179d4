// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;

namespace {

struct Row {
  const char* what;
  int vcpus;
  std::vector<ContainerFacts> containers;
  const char* expected_vcpus;
  const char* expected_containers;
  const char* expected_warnings;
};

void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    INFO(row.what);
    const Case c{.facts = sandbox(row.vcpus, row.containers)};
    const SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == row.expected_vcpus);
    CHECK(container_line(plan) == row.expected_containers);
    CHECK(warnings(plan) == row.expected_warnings);
    CHECK(c.broken(plan) == "");
    CHECK(c.plan(&plan) == plan);
  }
}

}  // namespace

TEST_CASE("with more vCPUs than owned CPUs every owned CPU has a vCPU and the rest float") {
  check_rows({
      {"Kata's N+1 with a container in the shared pool",
       3,
       {owner("a", "2-3"), shared("b", "0-1")},
       "0:0-1 1:2! 2:3!",
       "a:1-2! b:0",
       ""},
      {"two owners",
       4,
       {owner("a", "2-3"), owner("b", "5"), shared("c", "0-1")},
       "0:0-1 1:2! 2:3! 3:5!",
       "a:1-2! b:3! c:0",
       ""},
      {"several float",
       5,
       {owner("a", "2-3"), shared("b", "0-1")},
       "0:0-1 1:2! 2:3! 3:0-1 4:0-1",
       "a:1-2! b:0,3-4",
       ""},
      {"no owner at all",
       2,
       {shared("a", "0-1"), shared("b", "1-3")},
       "0:0-3 1:0-3",
       "a:0-1 b:0-1",
       ""},
      {"no cpuset at all: every CPU", 2, {shared("a", "")}, "0:0-7 1:0-7", "a:0-1", ""},
      {"a container without a cpuset adds nothing",
       2,
       {owner("a", "2"), shared("b", "")},
       "0:2 1:2!",
       "a:1! b:0",
       "not-isolated"},
      {"nothing is left for housekeeping: the core of the lowest CPU",
       4,
       {owner("a", "4-6")},
       "0:4 1:4! 2:5! 3:6!",
       "a:1-3!",
       "not-isolated"},
  });
}

TEST_CASE("with too few vCPUs a container is a group on its own CPUs") {
  check_rows({
      {"as many vCPUs as CPUs: all dedicated, the lowest one is shared",
       2,
       {owner("a", "2-3"), shared("b", "0-1")},
       "0:2! 1:3!",
       "a:0-1! b:0",
       "no-floating-vcpu"},
      {"one too few",
       3,
       {owner("a", "2-5")},
       "0:2-5(a) 1:2-5(a) 2:2-5(a)",
       "a:0-2",
       "no-floating-vcpu too-few-vcpus"},
      {"in proportion",
       3,
       {owner("a", "2-5"), owner("b", "6-7")},
       "0:2-5(a) 1:2-5(a) 2:6-7(b)",
       "a:0-1 b:2",
       "no-floating-vcpu too-few-vcpus too-few-vcpus"},
      {"the largest remainder gets the odd one",
       4,
       {owner("a", "0-1"), owner("b", "2-6")},
       "0:0-1(a) 1:2-6(b) 2:2-6(b) 3:2-6(b)",
       "a:0 b:1-3",
       "no-floating-vcpu too-few-vcpus too-few-vcpus"},
      {"ties go to the smallest id",
       3,
       {owner("a", "2-3"), owner("b", "4-5")},
       "0:2! 1:3! 2:4-5(b)",
       "a:0-1! b:2",
       "no-floating-vcpu too-few-vcpus"},
      {"at least one each",
       2,
       {owner("a", "2"), owner("b", "3-7")},
       "0:2! 1:3-7(b)",
       "a:0! b:1",
       "no-floating-vcpu too-few-vcpus"},
      {"fewer vCPUs than containers: the last share that of the lowest CPU",
       2,
       {owner("a", "5"), owner("b", "3"), owner("c", "6-7")},
       "0:5! 1:3,6-7(b)",
       "a:0! b:1 c:1",
       "no-floating-vcpu vcpu-shared vcpu-shared"},
      {"one vCPU serves both owners of the larger part, the other goes to the next part",
       2,
       {owner("a", "2-4"), owner("b", "3-5")},
       "0:2! 1:3-4(a)",
       "a:0-1 b:1",
       "no-floating-vcpu too-few-vcpus too-few-vcpus"},
      {"one vCPU for all",
       1,
       {owner("a", "4"), owner("b", "2"), shared("c", "0-1")},
       "0:2,4(a)",
       "a:0 b:0 c:0",
       "no-floating-vcpu vcpu-shared vcpu-shared"},
      {"no vCPU is known yet", 0, {owner("a", "2-3")}, "", "a:", ""},
  });
}

TEST_CASE("no container shares floating vCPUs if none floats") {
  const auto says = [](int vcpus) {
    return reasons(Case{.facts = sandbox(vcpus, {owner("a", "2-3"), shared("b", "0-1")})}.plan())
               .find("shared-container") != std::string::npos;
  };
  CHECK(says(3));
  CHECK_FALSE(says(2));
  CHECK_FALSE(says(0));
}

TEST_CASE("containers of one pod may overlap: one vCPU for each CPU, named after the first") {
  check_rows({
      {"init and app on the same CPUs",
       3,
       {owner("app", "2-3"), owner("init", "2-3")},
       "0:2 1:2! 2:3!",
       "app:1-2! init:1-2!",
       "not-isolated"},
      {"init within app",
       5,
       {owner("app", "2-5"), owner("init", "3-4"), shared("x", "0")},
       "0:0 1:2! 2:5! 3:3! 4:4!",
       "app:1-4! init:3-4! x:0",
       ""},
      {"partly",
       4,
       {owner("a", "2-3"), owner("b", "3-4"), shared("x", "0")},
       "0:0 1:2! 2:3! 3:4!",
       "a:1-2! b:2-3! x:0",
       ""},
      {"each is served before one is served twice",
       3,
       {owner("a", "2-3"), owner("b", "3-4"), owner("c", "6")},
       "0:2! 1:3! 2:6!",
       "a:0-1! b:1 c:2!",
       "no-floating-vcpu too-few-vcpus"},
  });
}

TEST_CASE("the vCPUs of an overlapping group stay inside every container that they serve") {
  const Case c{.facts = sandbox(2, {owner("a", "2-4"), owner("b", "4-7")})};
  const SandboxPlan plan = c.plan();
  CHECK(vcpu_line(plan) == "0:2-3(a) 1:5-7(b)");
  CHECK(container_line(plan) == "a:0 b:1");
  CHECK(c.broken(plan) == "");
}

TEST_CASE("an exited container leaves the mask and the list") {
  ContainerFacts gone = owner("b", "4-5");
  gone.exited = true;
  const Case c{.facts = sandbox(3, {owner("a", "2-3"), gone, shared("x", "0-1")})};
  const SandboxPlan plan = c.plan();
  CHECK(format_list(plan.mask) == "0-3");
  CHECK(container_line(plan) == "a:1-2! x:0");
}

TEST_CASE("mems are those of the containers, else the nodes of the mask") {
  Case c{.topology = machine(2, 4, 1), .facts = sandbox(2, {shared("a", "2-5")})};
  CHECK(format_list(c.plan().mems) == "0-1");
  c.facts.containers[0].mems = {1};
  CHECK(format_list(c.plan().mems) == "1");
}

TEST_CASE("unusable CPUs turn a container into a group on the usable ones") {
  Case c{.facts = sandbox(5, {owner("a", "2-5"), shared("b", "0-1")})};
  SECTION("offline") {
    c.topology = machine_with(1, 8, 1, "5", [](Cpu& cpu) { cpu.online = false; });
    const SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == "0:0-4 1:2-4(a) 2:2-4(a) 3:2-4(a) 4:2-4(a)");
    CHECK(warnings(plan) == "cpus-unusable");
    CHECK(c.broken(plan) == "");
  }
  SECTION("refused by the cgroup") {
    c.facts.cgroup_cpus = cpus("0-3");
    const SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == "0:0-3 1:2-3(a) 2:2-3(a) 3:2-3(a) 4:2-3(a)");
    CHECK(format_list(find_note(plan.warnings, Code::kCpusUnusable)->cpus) == "4-5");
    CHECK(c.broken(plan) == "");
  }
  SECTION("contested: claimed by another pod too, so neither uses it") {
    c.foreign = "2,6";
    const SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == "0:0-1,3-5 1:3-5(a) 2:3-5(a) 3:3-5(a) 4:3-5(a)");
    CHECK(warnings(plan) == "cpus-contested");
    CHECK(c.broken(plan) == "");
  }
  SECTION("all of them: its vCPUs float") {
    c.facts.cgroup_cpus = cpus("0-1");
    const SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == "0:0-1 1:0-1 2:0-1 3:0-1 4:0-1");
    CHECK(container_line(plan) == "a:0-4 b:0-4");
    CHECK(warnings(plan) == "cpus-unusable no-usable-cpu");
    CHECK(c.broken(plan) == "");
  }
  SECTION("an unaffected container beside it stays dedicated") {
    c.facts = sandbox(5, {owner("a", "2-3"), owner("b", "4-7"), shared("x", "0-1")});
    c.facts.cgroup_cpus = cpus("0-4");
    const SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == "0:0-1,4 1:2! 2:3! 3:4(b) 4:4(b)");
    CHECK(c.broken(plan) == "");
  }
}

TEST_CASE("CPUs that became exclusive to others are removed from a stale mask") {
  const Case c{.foreign = "1,4", .facts = sandbox(2, {shared("a", "0-5")})};
  const SandboxPlan plan = c.plan();
  CHECK(format_list(plan.mask) == "0-5");
  CHECK(vcpu_line(plan) == "0:0,2-3,5 1:0,2-3,5");
  CHECK(format_list(find_note(plan.reasons, Code::kForeignCpusRemoved)->cpus) == "1,4");
  CHECK(warnings(plan) == "");
}

TEST_CASE("a sandbox without a usable CPU falls back to CPUs without an owner") {
  Case c{.pool = "0-1", .foreign = "2-3", .facts = sandbox(2, {shared("a", "2-3")})};
  CHECK(vcpu_line(c.plan()) == "0:0-1 1:0-1");
  CHECK(warnings(c.plan()) == "no-usable-cpu");
  CHECK(find_note(c.plan().warnings, Code::kNoUsableCpu)->number == 0);
  CHECK(c.broken(c.plan()) == "");
  c.pool = "";
  CHECK(format_list(c.plan().housekeeping) == "0-1,4-7");
  c.facts.cgroup_cpus = cpus("2-3");
  CHECK(vcpu_line(c.plan()) == "0: 1:");
  CHECK(find_note(c.plan().warnings, Code::kNoUsableCpu)->number == 1);
  CHECK(c.plan().roles[Role::kEmulator].empty());
  CHECK(c.broken(c.plan()) == "");
}

TEST_CASE("vcpu_pinning = mask: every vCPU floats on the mask") {
  const Case c{.foreign = "3",
               .facts = sandbox(3, {owner("a", "2-5"), shared("b", "0-1")}),
               .settings = pinning(VcpuPinning::kMask)};
  const SandboxPlan plan = c.plan();
  CHECK(vcpu_line(plan) == "0:0-2,4-5 1:0-2,4-5 2:0-2,4-5");
  CHECK(container_line(plan) == "a:0-2 b:0-2");
  CHECK(find_note(plan.reasons, Code::kVcpusOnMask) != nullptr);
  CHECK(c.broken(plan) == "");
}

TEST_CASE("vcpu_pinning = none: vCPUs are planned and left alone") {
  Case c{.facts = sandbox(2, {owner("a", "4-5")}),
         .settings = keeping_house(Housekeeping::Kind::kSharedPool)};
  c.settings.vcpu_pinning = VcpuPinning::kNone;
  const SandboxPlan plan = c.plan();
  CHECK(vcpu_line(plan) == "0:0-1,4-5 1:0-1,4-5");
  CHECK_FALSE(plan.vcpus[0].placed);
  CHECK(plan.cpus_for({.role = Role::kVcpu, .vcpu_index = 0}) == nullptr);
  CHECK(format_list(*plan.cpus_for({.role = Role::kEmulator})) == "0-1");
}

TEST_CASE("vcpu_pinning = balanced: each floating vCPU gets a CPU, L3 by L3, core by core") {
  // Two L3 of two cores with two threads each: CPUs 0,1,4,5 and 2,3,6,7.
  Case c{.topology = machine(2, 2, 2),
         .facts = sandbox(5, {shared("a", "0-7")}),
         .settings = pinning(VcpuPinning::kBalanced)};
  CHECK(vcpu_line(c.plan()) == "0:0 1:2 2:1 3:3 4:4");
  CHECK(c.broken(c.plan()) == "");
  SECTION("dedicated vCPUs are unchanged") {
    c.facts = sandbox(4, {owner("a", "2-3"), shared("b", "0-1")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:2! 2:3! 3:1");
  }
  SECTION("floating vCPUs of others count") {
    NodeView view = c.view();
    view.floating_load = {1, 0, 1, 1};
    CHECK(vcpu_line(plan_sandbox(view, c.facts, c.settings, nullptr)) == "0:1 1:4 2:6 3:5 4:7");
  }
  SECTION("two on one CPU only when every CPU has one") {
    c.facts = sandbox(3, {shared("a", "0-1")});
    CHECK(vcpu_line(c.plan()) == "0:0 1:1 2:0");
  }
}
