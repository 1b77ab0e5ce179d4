// SPDX-License-Identifier: Apache-2.0
// What verify reports of claims on CPUs, and what a sandbox does on a node that gives them out.
#include "affinity/line/claims.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::Assignment;
using policy::ledger::PreparedClaim;
using policy::ledger::PreparedSeen;
using policy::ledger::ResourcesSeen;
using policy::ledger::Source;
using tests::LineScene;

namespace {

using Claims = std::vector<PreparedClaim>;

policy::ledger::Event prepared(Claims claims) {
  return {Source::kDra, PreparedSeen{std::move(claims)}};
}

policy::ledger::Event seen(const std::string& pod, CpuSet cpus, Claims claims) {
  policy::ContainerFacts facts;
  facts.id = pod + "-app";
  facts.name = "app";
  facts.cpus = std::move(cpus);
  auto report = policy::ledger::whole_report(pod, facts);
  report.claims = std::move(claims);
  return {Source::kNri, std::move(report)};
}

/// "claim-refused: text", one a line.
std::string findings(const policy::ledger::Ledger& ledger, bool is_current = true) {
  std::string text;
  for (const line::Finding& one : line::evaluate_claims(ledger, is_current)) {
    CHECK(one.severity == line::Severity::kDegraded);
    CHECK_FALSE(one.remedy.empty());
    text += one.reason + ": " + one.text + '\n';
  }
  return text;
}

policy::ledger::Ledger node_of(CpuSet cpus, Claims named, Claims prepared) {
  policy::ledger::Ledger ledger;
  ledger.apply({Source::kNri,
                policy::ledger::PodSeen{.id = "a", .pod_uid = "uid-a", .pod_name = "shop/cart"}});
  ledger.apply(seen("a", std::move(cpus), std::move(named)));
  ledger.apply({Source::kDra, PreparedSeen{std::move(prepared)}});
  return ledger;
}

}  // namespace

TEST_CASE("an environment that names no claim of its container is a finding") {
  CHECK(findings(node_of({4, 5}, {{"u1", {4, 5}}}, {{"u1", {4, 5}}})).empty());
  CHECK(findings(node_of({4, 5}, {{"u1", {4, 5}}}, {})) ==
        "claim-refused: container app of pod shop/cart names ResourceClaim u1 with CPUs 4-5 in "
        "its environment, which is not prepared\n");
  CHECK(findings(node_of({4, 5}, {{"u1", {4, 5}}}, {{"u1", {4, 6}}})) ==
        "claim-refused: container app of pod shop/cart names ResourceClaim u1 with CPUs 4-5 in "
        "its environment, which is prepared with CPUs 4,6\n");
  CHECK(findings(node_of({}, {{"u1", {4, 5}}}, {{"u1", {4, 5}}})) ==
        "claim-refused: container app of pod shop/cart names ResourceClaims with CPUs 4-5 in its "
        "environment, and may use any CPU: dra-driver-cpu did not set its cpuset\n");
}

TEST_CASE("kubelet's claims of a container are compared with those that its environment names") {
  auto ledger = node_of({4, 5}, {{"u1", {4, 5}}}, {{"u1", {4, 5}}});
  const auto assign = [&](std::vector<std::string> claims) {
    ledger.apply({Source::kPodResources,
                  ResourcesSeen{{}, {Assignment{"shop/cart", "app", {}, {}, std::move(claims)}}}});
  };
  assign({"u1"});
  CHECK(findings(ledger).empty());
  assign({"u2"});
  CHECK(findings(ledger, false).empty());
  CHECK(findings(ledger) ==
        "claims-disagree: container app of pod shop/cart has u1 by its environment, and u2 by "
        "kubelet's PodResources API\n");
  assign({});  // a kubelet that lists none for anyone does not list them at all
  CHECK(findings(ledger).empty());
}

TEST_CASE("a VM gets the CPUs of its claim, and everyone else leaves them before the answer") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.add("b", 200));
  scene.line().handle(prepared({{"u1", {4, 5}}}));
  for (const int tid : {200, 210, 211, 100, 110, 111, 112}) {
    INFO(tid);
    CHECK(scene.cpus(tid) == "0-3,6-7");
  }
  scene.line().handle(seen("a", {4, 5}, {{"u1", {4, 5}}}));
  scene.line().handle(seen("b", {4, 5}, {{"u1", {4, 6}}}));
  CHECK(std::ranges::count(scene.notified, "claim-refused") == 1);
  const auto dedicated = [&](const char* cpu) {
    return std::ranges::count_if(std::vector{110, 111, 112},
                                 [&](int tid) { return scene.cpus(tid) == cpu; });
  };
  CHECK(dedicated("4") >= 1);
  CHECK(dedicated("5") >= 1);
  CHECK(dedicated("4") + dedicated("5") == 3);  // the third floats there: its sandbox has no more
  const auto report = scene.verifier().verify();
  CHECK(std::ranges::count(report.findings, "claim-refused", &line::Finding::reason) == 1);
}

TEST_CASE("where claims leave no CPU to the rest, a shared sandbox keeps running") {
  LineScene scene;
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("b", 200));
  // An empty pool cannot be written over NRI: the driver leaves the container's set unchanged.
  scene.line().handle(seen("b", {}, {}));
  scene.line().handle(prepared({{"u1", CpuSet::range(0, 7)}}));
  for (const int tid : {200, 210, 211}) CHECK_FALSE(scene.cpus(tid).empty());
  scene.line().handle(prepared({{"u1", CpuSet::range(0, 5)}}));
  for (const int tid : {200, 210, 211}) CHECK(scene.cpus(tid) == "6-7");
}
