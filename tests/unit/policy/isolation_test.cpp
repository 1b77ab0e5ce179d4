// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/isolation.hpp"

#include "policy/plan/overrides.hpp"
#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;
using Kind = Housekeeping::Kind;

namespace {

/// What a guest whose agent answers says of containers that are where they were asked to be.
struct Guest {
  GuestSpec spec;
  GuestReport report;
  bool connected = true, current = true;

  GuestSide side() const { return {connected, current, &spec, &report}; }
};

Guest confirming(const SandboxFacts& sandbox) {
  Guest guest;
  for (const ContainerFacts& container : sandbox.containers) {
    guest.report.containers.push_back({.id = container.id, .method = GuestMethod::kCgroupV2});
  }
  return guest;
}

/// Every thread where the plan has it, as the kernel would say.
std::vector<ActualThread> as_planned(const SandboxPlan& plan) {
  std::vector<ActualThread> threads;
  for (const Placement& placed : placements_of(plan)) {
    threads.push_back({{{}, placed.role, placed.vcpu_index, placed.name}, placed.cpus});
  }
  return threads;
}

/// "a: too-few-vcpus 3; b:", with subjects in brackets.
std::string line_of(const std::vector<ContainerIsolation>& containers) {
  std::string line;
  for (const ContainerIsolation& container : containers) {
    line += (line.empty() ? "" : "; ") + container.container + ':';
    for (const NotIsolated& one : container.obstacles) {
      line += ' ' + std::string(obstacle_name(one.obstacle)) + ' ' + format_list(one.cpus);
      if (!one.subject.empty()) line += " [" + one.subject + ']';
    }
  }
  return line;
}

std::vector<ContainerIsolation> isolation(const Case& c, const Guest& guest,
                                          Placing placing = Placing::kWritten) {
  const SandboxPlan plan = c.plan();
  return isolation_of(c.view(), c.facts, c.settings, plan, as_planned(plan), guest.side(), placing);
}

std::string isolation_line(const Case& c) { return line_of(isolation(c, confirming(c.facts))); }

Override by_hand(Role role, const std::string& list, int vcpu = -1) {
  return {.role = role, .vcpu_index = vcpu, .cpus = cpus(list)};
}

Case with_pin(Case c, Override given) {
  c.facts.overrides.push_back(std::move(given));
  return c;
}

const Case kGood{.facts = sandbox(3, {owner("a", "2-3"), shared("z", "0-1")}),
                 .settings = keeping_house(Kind::kSharedPool)};

}  // namespace

TEST_CASE("a container with dedicated vCPUs and nothing beside them is isolated") {
  CHECK(isolation_line(kGood) == "a:");
  CHECK(isolation(kGood, confirming(kGood.facts)).front().isolated());
}

TEST_CASE("threads that share an exclusive container's CPUs are named") {
  struct Row {
    const char* what;
    Case c;
    const char* expected;
  };
  const auto alone = [](int vcpus, Kind kind) {
    return Case{.facts = sandbox(vcpus, {owner("a", "2-3")}), .settings = keeping_house(kind)};
  };
  auto refused = alone(3, Kind::kSharedPool);
  refused.facts.cgroup_cpus = cpus("2-3");
  auto foreign = kGood;
  foreign.foreign = "3";
  auto offline = kGood;
  offline.facts.cgroup_cpus = cpus("0-2");
  auto few = offline;
  few.facts = sandbox(2, {owner("a", "2-3"), shared("z", "0-1")});
  few.facts.cgroup_cpus = cpus("0-2");
  auto masked = kGood;
  masked.settings = keeping_house(Kind::kSharedPool);
  masked.settings.vcpu_pinning = VcpuPinning::kMask;
  auto overlapping = kGood;
  overlapping.facts = sandbox(3, {owner("a", "2-3"), owner("b", "2-3")});
  auto exited = kGood;
  exited.facts.containers.front().exited = true;
  const char* everyone =
      "a: housekeeping 2 [emulator, helper, iothread, shim, vhost, virtiofsd] floating-vcpu 2 "
      "[vCPU 0]";
  const Row rows[] = {
      {"a core is set aside and counts no more", alone(3, Kind::kIsolate), "a:"},
      {"shared containers on its vCPU",
       {.facts = sandbox(2, {owner("a", "2-3"), shared("z", "0-1")}),
        .settings = keeping_house(Kind::kSharedPool)},
       "a: no-floating-vcpu 2 shared-container 2 [z]"},
      {"fewer vCPUs than CPUs", alone(1, Kind::kSharedPool),
       "a: too-few-vcpus 2-3 no-floating-vcpu 2-3"},
      {"a CPU that another pod claims", foreign, "a: cpus-contested 3"},
      {"a CPU that its cgroup does not allow", offline, "a: cpus-unusable 3"},
      {"the same with fewer vCPUs than CPUs", few, "a: too-few-vcpus 2 cpus-unusable 3"},
      {"no vCPU is pinned", masked, "a: not-pinned 2-3"},
      {"two containers of one pod own the same", overlapping, "a:; b:"},
      {"it exited", exited, ""},
      {"one core carries all", alone(3, Kind::kSandbox), everyone},
      {"its cgroup refuses the shared pool", refused, everyone},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(isolation_line(row.c) == row.expected);
  }
}

TEST_CASE("a floating vCPU allowed on an exclusive CPU is named, planned or not") {
  const SandboxPlan plan = kGood.plan();
  auto threads = as_planned(plan);
  threads.front().cpus = cpus("0-3");  // vCPU 0
  const Guest guest = confirming(kGood.facts);
  CHECK(line_of(isolation_of(kGood.view(), kGood.facts, kGood.settings, plan, threads, guest.side(),
                             Placing::kWritten)) == "a: floating-vcpu 2-3 [vCPU 0]");
}

TEST_CASE("a manual pin is an obstacle if it takes something away") {
  CHECK(isolation_line(with_pin(kGood, by_hand(Role::kEmulator, "0"))) == "a:");
  CHECK(isolation_line(with_pin(kGood, by_hand(Role::kEmulator, "0-2"))) ==
        "a: pinned-by-hand 2 [emulator]");
  CHECK(isolation_line(with_pin(kGood, by_hand(Role::kVcpu, "3", 0))) ==
        "a: pinned-by-hand 3 [vCPU 0]");
  CHECK(isolation_line(with_pin(kGood, by_hand(Role::kVcpu, "0-1", 1))) ==
        "a: pinned-by-hand 0-1 [vCPU 1]");
  const Case harmless = with_pin(kGood, by_hand(Role::kVcpu, "2", 1));
  CHECK(isolation_line(harmless) == "a:");
  CHECK(isolation_line(with_pin(harmless, by_hand(Role::kVcpu, "0-1", 2))) ==
        "a: pinned-by-hand 0-1 [vCPU 2]");
}

TEST_CASE("the guest's side counts as far as it is confirmed") {
  const auto line = [](auto change) {
    Guest guest = confirming(kGood.facts);
    Case c = kGood;
    change(guest, c);
    return line_of(isolation(c, guest));
  };
  const auto state = [](Guest& guest) -> GuestContainerState& {
    return guest.report.containers.front();
  };
  CHECK(line([](Guest& guest, Case&) { guest.connected = false; }) == "a: guest-silent ");
  CHECK(line([](Guest& guest, Case&) { guest.current = false; }) ==
        "a: guest-unconfirmed  [behind]");
  CHECK(line([](Guest& guest, Case&) { guest.report.by_kata = true; }) ==
        "a: guest-unconfirmed  [kata-agent]");
  CHECK(line([](Guest& guest, Case&) {
          guest.report.by_kata = true;
          guest.report.containers.clear();  // it may use every CPU of the guest
        }) == "a: guest-unconfirmed  [kata-agent]");
  CHECK(line([](Guest& guest, Case&) { guest.report.containers.clear(); }) ==
        "a: guest-unconfirmed  [not-found]");
  CHECK(line([&](Guest& guest, Case&) { state(guest).problem = GuestProblem::kNotFound; }) ==
        "a: guest-unconfirmed  [not-found]");
  CHECK(line([&](Guest& guest, Case&) { state(guest).problem = GuestProblem::kThreadsOutside; }) ==
        "a: guest-elsewhere  [threads-outside]");
  CHECK(line([](Guest& guest, Case& c) {
          guest.connected = false;
          c.settings.guest.agent = GuestAgent::kNone;
        }) == "a:");
  // Which containers it has is not known: no agent could be told.
  const Case mask{
      .facts = sandbox(3, {owner("sandbox-mask", "2-3"), shared("sandbox-rest", "0-1")}),
      .settings = keeping_house(Kind::kSharedPool)};
  CHECK(isolation_line(mask) == "sandbox-mask: guest-unconfirmed  [mask-only]");
  Case none = kGood;
  none.settings.guest.agent = GuestAgent::kNone;
  CHECK(isolation(none, {}).front().guest_by_configuration);
}

TEST_CASE("nothing is isolated where nothing is placed") {
  const Guest guest = confirming(kGood.facts);
  CHECK(line_of(isolation(kGood, guest, Placing::kDisabled)) == "a: disabled 2-3");
  CHECK(line_of(isolation(kGood, guest, Placing::kReleased)) == "a: released 2-3");
  CHECK(line_of(isolation(kGood, guest, Placing::kObserved)) == "a: observed 2-3");
}

TEST_CASE("each obstacle has its remedy") {
  const auto remedy = [](const Case& c) {
    return isolation(c, confirming(c.facts)).front().obstacles.front().remedy;
  };
  Case crowded{.facts = sandbox(3, {owner("a", "2-3")}), .settings = keeping_house(Kind::kSandbox)};
  CHECK(remedy(crowded) == Remedy::kSharedPool);
  crowded.settings = keeping_house(Kind::kSharedPool);
  crowded.facts.cgroup_cpus = cpus("2-3");
  CHECK(remedy(crowded) == Remedy::kManageCgroup);
  crowded.settings.manage_cgroup = true;
  CHECK(remedy(crowded) == Remedy::kIsolate);
  CHECK(remedy(with_pin(kGood, by_hand(Role::kEmulator, "2"))) == Remedy::kUnpin);
  Case few{.facts = sandbox(1, {owner("a", "2-3")}), .settings = keeping_house(Kind::kSharedPool)};
  CHECK(remedy(few) == Remedy::kMoreVcpus);
}

TEST_CASE("a pin conflicts if it takes a dedicated vCPU's CPU or the vCPU from it") {
  struct Row {
    Override given;
    const char* taken;
  };
  const SandboxPlan plan = kGood.plan();
  REQUIRE(vcpu_line(plan) == "0:0-1 1:2! 2:3!");
  const Row rows[] = {
      {by_hand(Role::kEmulator, "0-1"), ""}, {by_hand(Role::kEmulator, "1-2"), "2"},
      {by_hand(Role::kIothread, "3"), "3"},  {by_hand(Role::kVhost, "2-3"), "2-3"},
      {by_hand(Role::kVcpu, "0", 0), ""},    {by_hand(Role::kVcpu, "0,3", 0), "3"},
      {by_hand(Role::kVcpu, "2", 1), ""},    {by_hand(Role::kVcpu, "2-3", 1), "2-3"},
      {by_hand(Role::kVcpu, "0", 1), "2"},
  };
  for (const Row& row : rows) {
    INFO(override_subject(row.given) << " on " << format_list(row.given.cpus));
    CHECK(format_list(lost_by_pin(row.given, plan)) == row.taken);
  }
}
