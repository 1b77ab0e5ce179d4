// SPDX-License-Identifier: Apache-2.0
// CPUs of which no source decides whether a container owns them.
#include <utility>

#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::Event;
using policy::ledger::Source;
using tests::LineScene;

namespace {

/// kubelet 1.33 and later lifts the quota of an owner; without shares nothing proves anything.
Event container(const std::string& pod, CpuSet cpus, std::int64_t shares = 0) {
  policy::ContainerFacts facts;
  facts.id = pod + "-app";
  facts.name = "app";
  facts.cpus = std::move(cpus);
  facts.quota = -1;
  facts.period = 100000;
  facts.shares = shares;
  return {Source::kNri, policy::ledger::whole_report(pod, facts)};
}

/// A VM on CPUs 2-3, and a pod of runc.
struct Scene : LineScene {
  Scene() {
    boot_vm(100, 2);
    REQUIRE(add("vm", 100));
    REQUIRE(LineScene::container("vm", "app", {2, 3}, false));
    line().handle({{Source::kNri, policy::ledger::PodSeen{.id = "b", .pod_uid = "uid-b"}}});
  }
};

}  // namespace

TEST_CASE("a managed cgroup has CPUs whose owner is in doubt where a thread has no others") {
  line::Options options;
  options.settings.manage_cgroup = true;
  LineScene scene(8, options);
  scene.boot_pod("s1", 100, 3);
  scene.cpusets.make("pods/s1", {2, 3});
  scene.line().handle({{Source::kNri, policy::ledger::PodSeen{.id = "b", .pod_uid = "uid-b"}},
                       container("b", {0, 1, 4, 5, 6, 7})});
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  CHECK(scene.cpus(111) == "2");
  CHECK(scene.cpus(100) == "0-1,4-7");
  CHECK(scene.cpusets.configured("pods/s1") == CpuSet::range(0, 7));
  CHECK(scene.broken().empty());
}

TEST_CASE("no thread is let onto CPUs whose owner is in doubt, until a source decides") {
  Scene scene;
  scene.line().handle({container("b", {4, 5})});
  REQUIRE(scene.container("vm", "app", {2, 3, 4, 5, 6}, false));
  CHECK(scene.cpus(110) == "2-3,6");
  CHECK(scene.cpus(100) == "2-3,6");
  CHECK(scene.line().check_drift().writes == 0);
  CHECK(scene.verifier().verify().findings.empty());
  SECTION("it was shared") {
    scene.line().handle({container("b", {4, 5}, 2)});
    CHECK(scene.cpus(110) == "2-6");
  }
  SECTION("it owns them") {
    scene.line().handle(
        {{Source::kPodResources, policy::ledger::ResourcesSeen{CpuSet::range(2, 7), {}}}});
    scene.line().handle({container("b", {4, 5}, 2048)});
    CHECK(scene.cpus(110) == "2-3,6");
  }
  SECTION("it exits") {
    scene.line().handle({{Source::kNri, policy::ledger::ContainerExited{"b", "b-app"}}});
    CHECK(scene.cpus(110) == "2-6");
  }
}

TEST_CASE("what has CPUs whose owner is in doubt keeps them, and gets none back that it left") {
  Scene scene;
  scene.line().handle({container("b", {3})});
  CHECK(scene.cpus(110) == "2-3");
  REQUIRE(scene.container("vm", "app", {2}, false));
  CHECK(scene.cpus(110) == "2");
  REQUIRE(scene.container("vm", "app", {2, 3}, false));
  CHECK(scene.cpus(110) == "2");
}

TEST_CASE("a sandbox all of whose CPUs are in doubt runs there: it has no others") {
  Scene scene;
  scene.line().handle({container("b", {4, 5, 6})});
  REQUIRE(scene.container("vm", "app", {4, 5}, false));
  CHECK(scene.cpus(110) == "4-5");
}

TEST_CASE("a doubt outlives a restart, until its container is reported again") {
  Scene scene;
  scene.line().handle({container("b", {4, 5})});
  REQUIRE(scene.container("vm", "app", {2, 3}, false));
  scene.start();
  scene.line().adopt();
  REQUIRE(scene.container("vm", "app", {2, 3, 4, 5, 6}, false));
  CHECK(scene.cpus(110) == "2-3,6");
  scene.line().handle({container("b", {4, 5}, 2)});
  CHECK(scene.cpus(110) == "2-6");
}

TEST_CASE("a pin by hand to CPUs whose owner is in doubt is refused") {
  Scene scene;
  scene.line().handle({container("b", {4, 5})});
  policy::ledger::OverrideSet pin{.sandbox = "vm"};
  pin.value.role = policy::Role::kEmulator;
  pin.value.cpus = {4};
  const auto refused = scene.requests().submit({Source::kApi, pin});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "cpus: 4 may be exclusive to another pod (see explain --cpu)");
}
