// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;
using Kind = Housekeeping::Kind;

namespace {

/// The one set that all roles share whose threads go with no vCPU.
std::string common_set(const SandboxPlan& plan) {
  const CpuSet& common = plan.roles[Role::kEmulator];
  for (const RoleInfo& info : kRoles) {
    const bool differs = !goes_with_vcpu(info.role) && plan.roles[info.role] != common;
    if (differs) return "different sets";
  }
  return format_list(common);
}

struct Row {
  const char* what;
  Settings settings;
  const char* cgroup;  // "" for all
  const char* expected_housekeeping;
  const char* expected_vcpus;
  const char* expected_warnings;
};

void check_rows(Case c, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    INFO(row.what);
    c.settings = row.settings;
    c.facts.cgroup_cpus.reset();
    if (*row.cgroup != '\0') c.facts.cgroup_cpus = cpus(row.cgroup);
    const SandboxPlan plan = c.plan();
    CHECK(common_set(plan) == row.expected_housekeeping);
    CHECK(vcpu_line(plan) == row.expected_vcpus);
    CHECK(warnings(plan) == row.expected_warnings);
    CHECK(c.broken(plan) == "");
    CHECK(c.plan(&plan) == plan);
  }
}

}  // namespace

TEST_CASE("housekeeping runs where its setting says, within the sandbox's limits") {
  // 8 cores with two threads: CPU n and n + 8.
  const Case c{.topology = machine(1, 8, 2),
               .pool = "0-1,8-9",
               .facts = sandbox(5, {owner("a", "2-3,10-11")})};
  check_rows(
      c, {
             {"sandbox: nothing is left, so one core carries all", keeping_house(Kind::kSandbox),
              "", "2,10", "0:2,10 1:2! 2:3! 3:10! 4:11!", "not-isolated"},
             {"shared pool", keeping_house(Kind::kSharedPool), "", "0-1,8-9",
              "0:0-1,8-9 1:2! 2:3! 3:10! 4:11!", ""},
             {"as much of the pool as the cgroup allows", keeping_house(Kind::kSharedPool),
              "1-3,9-11", "1,9", "0:1,9 1:2! 2:3! 3:10! 4:11!", ""},
             {"a pool that the cgroup refuses", keeping_house(Kind::kSharedPool), "2-3,10-11",
              "2,10", "0:2,10 1:2! 2:3! 3:10! 4:11!", "housekeeping-confined not-isolated"},
             {"a cpuset", keeping_house(Kind::kCpus, "5,13"), "", "5,13",
              "0:5,13 1:2! 2:3! 3:10! 4:11!", ""},
             {"a cpuset without the CPUs that are dedicated", keeping_house(Kind::kCpus, "3-5"), "",
              "4-5", "0:4-5 1:2! 2:3! 3:10! 4:11!", ""},
             {"a cpuset that is dedicated", keeping_house(Kind::kCpus, "2-3"), "", "2,10",
              "0:2,10 1:2! 2:3! 3:10! 4:11!", "housekeeping-refused not-isolated"},
             {"a core set aside; the dedicated vCPUs get the other", keeping_house(Kind::kIsolate),
              "", "2,10", "0:2,10 1:3! 2:11! 3:2,10 4:2,10", ""},
         });
}

TEST_CASE(
    "by default all but dedicated vCPUs is in the shared pool, as far as each cgroup allows") {
  Case c{.pool = "0-1", .facts = sandbox(3, {owner("a", "2-3")}), .settings = {}};
  c.facts.cgroup_cpus = cpus("2-3");
  c.facts.cgroup_by_role = {{Role::kShim, cpus("0-7")}, {Role::kVirtiofsd, cpus("1-7")}};
  c.facts.roles = {Role::kVcpu, Role::kEmulator, Role::kVhost, Role::kShim, Role::kVirtiofsd};
  const SandboxPlan plan = c.plan();
  CHECK(vcpu_line(plan) == "0:2 1:2! 2:3!");
  CHECK(format_list(plan.roles[Role::kEmulator]) == "2");
  CHECK(format_list(plan.roles[Role::kVhost]) == "2");
  CHECK(format_list(plan.roles[Role::kShim]) == "0-1");
  CHECK(format_list(plan.roles[Role::kVirtiofsd]) == "1");
  CHECK(warnings(plan) == "housekeeping-confined not-isolated");
  const Note* confined = find_note(plan.warnings, Code::kHousekeepingConfined);
  CHECK(confined->subject == "floating vCPUs, emulator, vhost");
  CHECK(format_list(confined->cpus) == "0-1");
  CHECK(c.broken(plan) == "");
  CHECK(c.plan(&plan) == plan);
}

TEST_CASE("a thread that could be in the shared pool violates I4 on a dedicated vCPU's CPU") {
  Case c{.pool = "0-1", .facts = sandbox(3, {owner("a", "2-3")}), .settings = {}};
  c.facts.cgroup_cpus = cpus("2-3");
  c.facts.cgroup_by_role = {{Role::kShim, cpus("0-7")}};
  SandboxPlan plan = c.plan();
  plan.roles[Role::kShim] = cpus("2");
  CHECK(c.broken(plan) == "I4 not-alone s shim 2");
  plan.roles[Role::kShim] = cpus("4");
  CHECK(c.broken(plan) == "I1 outside s shim 4");
}

TEST_CASE("threads in a cgroup without the sandbox's CPUs run on what it has") {
  Case c{.pool = "0-1", .foreign = "4", .facts = sandbox(3, {owner("a", "2-3")})};
  c.facts.cgroup_by_role = {{Role::kShim, cpus("1,4,6")}, {Role::kVirtiofsd, cpus("4,6")}};
  const SandboxPlan plan = c.plan();
  CHECK(format_list(plan.roles[Role::kShim]) == "1");
  CHECK(format_list(plan.roles[Role::kVirtiofsd]) == "6");
  CHECK(c.broken(plan) == "");
}

TEST_CASE(
    "a VM starts on its pod's CPUs and the pool's on the same nodes until a container is known") {
  // Two nodes of four CPUs each: 0-3 and 4-7.
  Case c{.topology = machine(2, 4, 1), .pool = "0-1,6-7", .facts = sandbox(2, {}), .settings = {}};
  const auto plan = [&] {
    NodeView view = c.view();
    view.owned = cpus("4-5");
    const SandboxPlan made = plan_sandbox(view, c.facts, c.settings, nullptr);
    CHECK(violation_line(check_plan(view, c.facts, c.settings, made)) == "");
    return made;
  };
  CHECK(common_set(plan()) == "4-7");
  CHECK(vcpu_line(plan()) == "0:4-7 1:4-7");
  CHECK(reasons(plan()) == "born-near floating");
  c.facts.cgroup_cpus = cpus("0-3");
  CHECK(common_set(plan()) == "0-1");
  c.facts.cgroup_cpus.reset();
  c.facts.containers = {owner("a", "4-5")};
  CHECK(common_set(plan()) == "0-1,6-7");
}

TEST_CASE("an empty shared pool is as \"sandbox\", without a cgroup warning") {
  Case c{.pool = "", .facts = sandbox(3, {owner("a", "2-3"), shared("b", "5")}), .settings = {}};
  CHECK(common_set(c.plan()) == "5");
  CHECK(warnings(c.plan()) == "");
  c.facts.containers.pop_back();
  CHECK(common_set(c.plan()) == "2");
  CHECK(warnings(c.plan()) == "not-isolated");
  CHECK(c.broken(c.plan()) == "");
}

TEST_CASE("housekeeping = sandbox is the mask without the dedicated CPUs") {
  check_rows(Case{.facts = sandbox(4, {owner("a", "2-4"), shared("b", "0-1")})},
             {{"the shared container's CPUs", keeping_house(Kind::kSandbox), "", "0-1",
               "0:0-1 1:2! 2:3! 3:4!", ""},
              {"what the cgroup allows of them", keeping_house(Kind::kSandbox), "1-4", "1",
               "0:1 1:2! 2:3! 3:4!", ""}});
}

TEST_CASE("housekeeping never uses CPUs of others") {
  Case c{.pool = "0-1", .foreign = "1,6", .facts = sandbox(2, {owner("a", "4")})};
  c.settings = keeping_house(Kind::kSharedPool);
  CHECK(common_set(c.plan()) == "0");
  c.settings = keeping_house(Kind::kCpus, "5-7");
  CHECK(common_set(c.plan()) == "5,7");
  c.settings = keeping_house(Kind::kCpus, "6");
  CHECK(warnings(c.plan()) == "housekeeping-refused not-isolated");
}

TEST_CASE("housekeeping = isolate takes the lowest core that leaves each container a CPU") {
  Case c{.topology = machine(1, 8, 2), .settings = keeping_house(Kind::kIsolate)};
  SECTION("not a container's only core") {
    c.facts = sandbox(5, {owner("a", "2,10"), owner("b", "3-4,11-12")});
    CHECK(vcpu_line(c.plan()) == "0:3,11 1:2! 2:10! 3:4! 4:12!");
    CHECK(container_line(c.plan()) == "a:1-2! b:3-4!");
  }
  SECTION("a sandbox of one core keeps it") {
    c.facts = sandbox(3, {owner("a", "2,10")});
    CHECK(vcpu_line(c.plan()) == "0:2,10 1:2! 2:10!");
    CHECK(warnings(c.plan()) == "isolate-impossible not-isolated");
  }
  SECTION("without exclusive containers there is nothing to set aside") {
    c.facts = sandbox(2, {shared("a", "0-1")});
    CHECK(vcpu_line(c.plan()) == "0:0-1 1:0-1");
    CHECK(warnings(c.plan()) == "");
  }
  SECTION("too few vCPUs for the remaining cores") {
    c.facts = sandbox(2, {owner("a", "2-4,10-12")});
    CHECK(vcpu_line(c.plan()) == "0:3-4,11-12(a) 1:3-4,11-12(a)");
    CHECK(common_set(c.plan()) == "2,10");
  }
  CHECK(c.broken(c.plan()) == "");
}

TEST_CASE("a role may have its own housekeeping") {
  Case c{.pool = "0-1", .facts = sandbox(4, {owner("a", "2-4"), shared("b", "6")})};
  c.settings.housekeeping_by_role[Role::kEmulator] = {Kind::kSharedPool, {}};
  c.settings.housekeeping_by_role[Role::kVhost] = {Kind::kCpus, cpus("7")};
  c.settings.housekeeping_by_role[Role::kShim] = {Kind::kCpus, cpus("2")};
  c.facts.iothreads = {"io1"};
  const SandboxPlan plan = c.plan();
  CHECK(format_list(plan.roles[Role::kEmulator]) == "0-1");
  CHECK(format_list(plan.roles[Role::kVhost]) == "7");
  CHECK(format_list(plan.iothreads.at("io1")) == "6");
  CHECK(format_list(plan.roles[Role::kShim]) == "6");
  CHECK(find_note(plan.warnings, Code::kHousekeepingRefused)->subject == "shim");
  CHECK(vcpu_line(plan) == "0:6 1:2! 2:3! 3:4!");
  CHECK(c.broken(plan) == "");
}

TEST_CASE("a single role may have the core set aside") {
  Case c{.pool = "0-1", .facts = sandbox(4, {owner("a", "2-4")})};
  c.settings = keeping_house(Kind::kSharedPool);
  c.settings.housekeeping_by_role[Role::kEmulator] = {Kind::kIsolate, {}};
  const SandboxPlan plan = c.plan();
  CHECK(format_list(plan.roles[Role::kEmulator]) == "2");
  CHECK(format_list(plan.roles[Role::kVhost]) == "0-1");
  CHECK(vcpu_line(plan) == "0:0-1 1:3! 2:4! 3:0-1");
  CHECK(c.broken(plan) == "");
}

TEST_CASE("no thread floats over several isolated CPUs") {
  Case c{.topology = machine_with(1, 8, 1, "2-7", [](Cpu& cpu) { cpu.isolated = true; })};
  SECTION("in the shared pool, too") {
    c.pool = "1-4";
    c.settings = {};
    c.facts = sandbox(3, {owner("a", "5-6")});
    CHECK(common_set(c.plan()) == "1");
    c.pool = "3-4";
    CHECK(common_set(c.plan()) == "3");
  }
  SECTION("with others left: the isolated ones are left out") {
    c.facts = sandbox(2, {shared("a", "1-3")});
    CHECK(vcpu_line(c.plan()) == "0:1 1:1");
    CHECK(find_note(c.plan().reasons, Code::kIsolatedCpus) != nullptr);
  }
  SECTION("all isolated: the lowest one") {
    c.facts = sandbox(2, {shared("a", "3-5")});
    CHECK(vcpu_line(c.plan()) == "0:3 1:3");
    CHECK(common_set(c.plan()) == "3");
  }
  SECTION("a group: one CPU per vCPU") {
    c.facts = sandbox(2, {owner("a", "3-5")});
    CHECK(vcpu_line(c.plan()) == "0:3(a) 1:4(a)");
  }
  SECTION("a group with enough other CPUs floats on these") {
    c.facts = sandbox(2, {owner("a", "0-3")});
    CHECK(vcpu_line(c.plan()) == "0:0-1(a) 1:0-1(a)");
  }
  SECTION("dedicated vCPUs use isolated CPUs") {
    c.facts = sandbox(3, {owner("a", "3-4"), shared("b", "0-1")});
    CHECK(vcpu_line(c.plan()) == "0:0-1 1:3! 2:4!");
  }
  SECTION("on the mask") {
    c.settings = pinning(VcpuPinning::kMask);
    c.facts = sandbox(2, {owner("a", "1-4")});
    CHECK(vcpu_line(c.plan()) == "0:1 1:1");
  }
  CHECK(c.broken(c.plan()) == "");
}

TEST_CASE("a manual pin overrides the plan, as far as it is usable") {
  Case c{.foreign = "7", .facts = sandbox(3, {owner("a", "2-3"), shared("b", "0-1")})};
  c.facts.iothreads = {"io1", "io2"};
  const auto by_hand = [&](Role role, int vcpu, const std::string& iothread,
                           const std::string& set) {
    c.facts.overrides.push_back({role, vcpu, iothread, cpus(set)});
  };
  SECTION("threads other than vCPUs") {
    by_hand(Role::kEmulator, -1, "", "5-7");
    by_hand(Role::kIothread, -1, "io2", "4");
    by_hand(Role::kIothread, -1, "", "6");
    const SandboxPlan plan = c.plan();
    CHECK(format_list(plan.roles[Role::kEmulator]) == "5-6");
    CHECK(format_list(plan.iothreads.at("io1")) == "6");
    CHECK(format_list(plan.iothreads.at("io2")) == "4");
    CHECK(format_list(plan.roles[Role::kIothread]) == "6");
    CHECK(format_list(plan.roles[Role::kVhost]) == "0-1");
  }
  SECTION("a vCPU pinned elsewhere floats, and keeps its CPU for later") {
    by_hand(Role::kVcpu, 1, "", "5");
    SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == "0:0-1 1:5(a) 2:3!");
    CHECK(container_line(plan) == "a:1-2 b:0");
    CHECK(c.plan(&plan) == plan);
    c.facts.overrides.clear();
    plan = c.plan(&plan);
    CHECK(vcpu_line(plan) == "0:0-1 1:2! 2:3!");
  }
  SECTION("none of it usable") {
    by_hand(Role::kVcpu, 1, "", "7");
    const SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == "0:0-1 1:2! 2:3!");
    CHECK(find_note(plan.warnings, Code::kOverrideRefused)->subject == "vCPU 1");
  }
  SECTION("a missing thread") {
    by_hand(Role::kVcpu, 9, "", "5");
    by_hand(Role::kIothread, -1, "nobody", "5");
    const SandboxPlan plan = c.plan();
    CHECK(vcpu_line(plan) == "0:0-1 1:2! 2:3!");
    CHECK(warnings(plan) == "");
  }
  CHECK(c.broken(c.plan()) == "");
}
