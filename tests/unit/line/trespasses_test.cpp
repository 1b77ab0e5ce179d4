// SPDX-License-Identifier: Apache-2.0
// Sandboxes on CPUs that belong to others: counted by who told, and timed until they are off.
#include "affinity/board/trespasses.hpp"

#include <algorithm>

#include "affinity/line/others.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using tests::LineScene;

namespace {

constexpr auto kBudget = std::chrono::hours(1);

std::uint64_t finished(const board::Trespasses& trespasses, const std::string& source) {
  const auto found = trespasses.durations().find(source);
  if (found == trespasses.durations().end()) return 0;
  std::uint64_t sum = 0;
  for (const std::uint64_t count : found->second.counts) sum += count;
  return sum;
}

std::uint64_t touched(const board::Trespasses& trespasses, const std::string& source) {
  const auto found = trespasses.cpus().find(source);
  return found == trespasses.cpus().end() ? 0 : found->second;
}

/// A pod without a VM gets CPUs of its own.
policy::ledger::Event owner_appears(policy::ledger::Source source, CpuSet cpus) {
  policy::ContainerFacts facts;
  facts.id = "c";
  facts.cpus = std::move(cpus);
  return {source, policy::ledger::whole_report("runc", facts, true)};
}

void boot_shared_vm(LineScene& scene, line::Options options = tests::at_home()) {
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {0, 1, 2, 3}, false));
  policy::ledger::PodSeen pod;
  pod.id = "runc";
  scene.line().configure(std::move(options));
  scene.line().handle({policy::ledger::Source::kNri, pod});
}

}  // namespace

TEST_CASE("a trespass lasts until the last thread is off the other pod's CPUs") {
  LineScene scene;
  boot_shared_vm(scene);
  const auto& trespasses = scene.board().trespasses();
  scene.line().handle(owner_appears(policy::ledger::Source::kKubelet, {2, 3}));
  CHECK(scene.cpus(110) == "0-1");
  CHECK(touched(trespasses, "kubelet") == 2);
  CHECK(finished(trespasses, "kubelet") == 1);
  CHECK(trespasses.open_cpus() == 0);
}

TEST_CASE("what verify finds on other pods' CPUs is counted at once, and that it has left") {
  LineScene scene;
  boot_shared_vm(scene);
  const auto& trespasses = scene.board().trespasses();
  scene.line().handle(owner_appears(policy::ledger::Source::kKubelet, {2, 3}));
  scene.calls.own[110] = {0, 1, 2};
  const auto violated = [&scene] {
    const auto findings = scene.verifier().verify().findings;
    return std::ranges::count(findings, "I2", &line::Finding::invariant);
  };
  CHECK(violated() == 1);
  CHECK(trespasses.open_cpus() == 1);
  scene.calls.own[110] = {0, 1};
  CHECK(violated() == 0);
  CHECK(trespasses.open_cpus() == 0);
}

TEST_CASE("a released sandbox on other pods' CPUs is counted and named, and degrades after 15 s") {
  LineScene scene;
  boot_shared_vm(scene);
  REQUIRE(scene.requests().release("s1"));
  scene.line().handle(owner_appears(policy::ledger::Source::kKubelet, {2, 3}));
  const auto found = [&scene] {
    auto findings = scene.verifier().verify().findings;
    std::erase_if(findings, [](const line::Finding& one) { return one.reason != "released"; });
    return findings;
  };
  REQUIRE(found().size() == 1);
  CHECK(found()[0].severity == line::Severity::kNote);
  CHECK(found()[0].text ==
        "not ours: released sandbox s1 may run on CPUs 2-3, which another container owns (kubelet "
        "has 15 s to narrow it)");
  CHECK(found()[0].actual == CpuSet{2, 3});
  CHECK(scene.board().trespasses().open_cpus() == 2);

  scene.clock.advance(line::kGraceOfOthers);
  CHECK(found()[0].severity == line::Severity::kNote);
  scene.clock.advance(std::chrono::milliseconds(1));
  CHECK(found()[0].severity == line::Severity::kDegraded);
  CHECK(scene.verifier().verify().ok());  // not violated

  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(found().empty());
  CHECK(scene.board().trespasses().open_cpus() == 0);
}

TEST_CASE("a sandbox narrowed after the response counts from the event") {
  LineScene scene;
  boot_shared_vm(scene);
  const auto& trespasses = scene.board().trespasses();
  CHECK(scene.line().narrow({owner_appears(policy::ledger::Source::kNri, {2, 3})}, {}).late == 1);
  CHECK(touched(trespasses, "nri") == 2);
  CHECK(finished(trespasses, "nri") == 0);
  CHECK(trespasses.open_cpus() == 2);
  scene.line().finish("runc");
  CHECK(finished(trespasses, "nri") == 1);
  CHECK(trespasses.open_cpus() == 0);
}

TEST_CASE("a trespass narrowed in time ends before the response") {
  LineScene scene;
  boot_shared_vm(scene);
  scene.line().narrow({owner_appears(policy::ledger::Source::kNri, {2, 3})}, kBudget);
  CHECK(finished(scene.board().trespasses(), "nri") == 1);
}

TEST_CASE("a mask that another program widened is found without a source") {
  LineScene scene;
  boot_shared_vm(scene);
  scene.line().handle(owner_appears(policy::ledger::Source::kNri, {2, 3}));
  scene.calls.own[110] = {0, 3};
  scene.line().check_drift();
  const auto& trespasses = scene.board().trespasses();
  CHECK(touched(trespasses, "drift") == 1);
  CHECK(finished(trespasses, "drift") == 1);
}

TEST_CASE("an unresolved trespass stays open, is counted once, and ends with its sandbox") {
  LineScene scene;
  boot_shared_vm(scene, {.observe = true});
  const auto& trespasses = scene.board().trespasses();
  scene.line().handle(owner_appears(policy::ledger::Source::kNri, {2, 3}));
  for (int i = 0; i < 3; ++i) scene.line().reconcile_all();
  CHECK(touched(trespasses, "nri") == 2);
  CHECK(trespasses.open_cpus() == 2);
  CHECK(trespasses.durations().empty());
  REQUIRE(scene.remove("s1"));
  CHECK(trespasses.open_cpus() == 0);
}
