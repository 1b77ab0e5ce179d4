// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;

namespace {

Case guarded() {
  return {.topology = machine(1, 8, 2),
          .pool = "0-1,8-9",
          .foreign = "7,15",
          .facts = sandbox(6, {owner("a", "2-3,10-11"), shared("b", "0-1")})};
}

ActualThread vcpu_on(int index, const std::string& set) {
  ActualThread actual;
  actual.thread.role = Role::kVcpu;
  actual.thread.vcpu_index = index;
  actual.cpus = cpus(set);
  return actual;
}

ActualThread emulator_on(const std::string& set) {
  ActualThread actual;
  actual.cpus = cpus(set);
  return actual;
}

std::string actual_line(const Case& c, const std::vector<ActualThread>& threads) {
  return violation_line(check_actual(c.view(), c.facts, c.settings, c.plan(), threads));
}

}  // namespace

TEST_CASE("the checker names each violation of a plan") {
  Case c = guarded();
  c.facts.vcpus = vcpus(6, 2);
  SandboxPlan plan = c.plan();
  REQUIRE(vcpu_line(plan) == "0:0-1 1:0-1 2:2! 3:10! 4:3! 5:11!");
  REQUIRE(c.broken(plan) == "");
  SECTION("I1") {
    plan.roles[Role::kVhost] = cpus("1,5");
    CHECK(c.broken(plan) == "I1 outside s vhost 5");
  }
  SECTION("I2") {
    plan.roles[Role::kShim] = cpus("7");
    CHECK(c.broken(plan) == "I2 foreign-cpu s shim 7");
  }
  SECTION("I3: two on one CPU") {
    plan.vcpus[3].cpus = cpus("2");
    CHECK(c.broken(plan).find("I4 not-dedicated s a 10") != std::string::npos);
    CHECK(violation_line(check_dedicated({{"s", 2, cpus("2")}, {"t", 0, cpus("2")}})) ==
          "I3 cpu-taken t vCPU 0 2");
  }
  SECTION("I3: not one CPU") {
    plan.vcpus[3].cpus = cpus("10-11");
    CHECK(c.broken(plan).starts_with("I3 not-one-cpu s vCPU 3 10-11"));
  }
  SECTION("I4: the emulator beside a dedicated vCPU") {
    plan.roles[Role::kEmulator] = cpus("0-2");
    CHECK(c.broken(plan) == "I4 not-alone s emulator 2");
  }
  SECTION("I4: one dedicated vCPU is missing") {
    plan.vcpus[5] = {.index = 5, .cpus = cpus("0-1")};
    CHECK(c.broken(plan).starts_with("I4 not-dedicated s a 11"));
  }
  SECTION("I4: a vCPU on one CPU that is not dedicated to it") {
    plan.vcpus[3].role = VcpuRole::kFloating;
    CHECK(c.broken(plan).find("I4 not-dedicated s a 10") != std::string::npos);
  }
  SECTION("I4: a vCPU too many") {
    plan.containers[0].vcpus.add(1);
    CHECK(c.broken(plan).find("I4 not-dedicated s a ") != std::string::npos);
  }
  SECTION("I4: a shared container on another's vCPU") {
    plan.containers[1].vcpus = {0, 2};
    CHECK(c.broken(plan) == "I4 vcpu-not-own s b ");
  }
  SECTION("I5") {
    std::swap(plan.vcpus[3].cpus, plan.vcpus[4].cpus);
    CHECK(c.broken(plan).starts_with("I5 siblings-apart s vCPU"));
  }
  SECTION("I8: a container without a vCPU") {
    plan.containers[1].vcpus = {};
    CHECK(c.broken(plan).starts_with("I8 no-vcpu s b"));
  }
}

TEST_CASE("the checker wants dedicated vCPUs also where there are just as many as CPUs") {
  const Case c{.topology = machine(1, 8, 2),
               .pool = "0-1,8-9",
               .foreign = "7,15",
               .facts = sandbox(4, {owner("a", "2-3,10-11")})};
  SandboxPlan plan = c.plan();
  REQUIRE(c.broken(plan) == "");
  plan.vcpus[3] = {.index = 3, .cpus = cpus("0-1")};
  CHECK(c.broken(plan).find("I4 not-dedicated s a ") != std::string::npos);
}

TEST_CASE("the checker finds a group outside its container's CPUs") {
  const Case c{.facts = sandbox(2, {owner("a", "2-4"), shared("b", "0")})};
  SandboxPlan plan = c.plan();
  plan.vcpus[0].cpus = cpus("0,2-4");
  CHECK(c.broken(plan).starts_with("I8 widened s vCPU 0 0"));
}

TEST_CASE("the checker finds a plan that would change when planned again") {
  const Case c{.facts = sandbox(4, {owner("a", "2-3"), shared("b", "0")})};
  SandboxPlan plan = c.plan();
  plan.vcpus[3].cpus = cpus("0,2");
  CHECK(c.broken(plan).find("I6 unstable s vCPU 3") != std::string::npos);
}

TEST_CASE("the kernel's masks are checked by the same rules") {
  Case c = guarded();
  CHECK(actual_line(c, {vcpu_on(0, "0-1"), vcpu_on(1, "2"), emulator_on("0-1")}) == "");
  CHECK(actual_line(c, {emulator_on("0-15")}) ==
        "I2 foreign-cpu s emulator 7,15; I1 outside s emulator 4-6,8-9,12-14; "
        "I4 not-alone s emulator 2-3,10-11");
  CHECK(actual_line(c, {vcpu_on(1, "2-3")}) ==
        "I3 not-one-cpu s vCPU 1 2-3; I3 cpu-taken s vCPU 1 3");
  SECTION("an affinity counts within the cgroup only") {
    c.facts.cgroup_cpus = cpus("0-3,10-11");
    CHECK(actual_line(c, {emulator_on("0-1,7,15")}) == "");
  }
  SECTION("a vCPU left alone is not checked") {
    c.settings = pinning(VcpuPinning::kNone);
    CHECK(actual_line(c, {vcpu_on(2, "7")}) == "");
  }
  SECTION("a manual pin may lie outside the mask, but not on CPUs of other pods") {
    c.facts.overrides = {{Role::kEmulator, -1, "", cpus("5,7")}};
    CHECK(actual_line(c, {emulator_on("5")}) == "");
    CHECK(actual_line(c, {emulator_on("5,7")}) == "I2 foreign-cpu s emulator 7");
  }
}

TEST_CASE("a group that the kernel allows outside its container's CPUs is found") {
  const Case c{.facts = sandbox(2, {owner("a", "2-4"), shared("b", "0")})};
  CHECK(actual_line(c, {vcpu_on(0, "2-4")}) == "");
  CHECK(actual_line(c, {vcpu_on(0, "0,2-4")}) == "I8 widened s vCPU 0 0");
}

TEST_CASE("every code and breach has a unique name") {
  CHECK(code_name(Code::kDedicated) == "dedicated");
  CHECK(code_name(Code::kOverrideRefused) == "override-refused");
  for (int i = 0; i <= static_cast<int>(Code::kOverrideRefused); ++i) {
    CHECK(code_name(static_cast<Code>(i)) != "unknown");
    for (int k = 0; k < i; ++k) {
      CHECK(code_name(static_cast<Code>(i)) != code_name(static_cast<Code>(k)));
    }
  }
  for (int i = 0; i <= static_cast<int>(Breach::kNoVcpu); ++i) {
    CHECK(breach_name(static_cast<Breach>(i)) != "unknown");
    CHECK(invariant_of(static_cast<Breach>(i)) > 0);
  }
}
