// SPDX-License-Identifier: Apache-2.0
// CPUs of ResourceClaims: whose they are, and for how long.
#include <string>
#include <utility>
#include <vector>

#include "policy/ledger/contests.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/ledger/refused.hpp"
#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::ledger;

namespace {

using Claims = std::vector<PreparedClaim>;

/// On a node of dra-driver-cpu: kubelet's policy is "none", and containers need no quota.
struct Node {
  Node() { ledger.apply({Source::kKubelet, KubeletSeen{}}); }

  void add_pod(const std::string& id) {
    ledger.apply({Source::kNri, PodSeen{.id = id, .pod_uid = "uid-" + id, .pod_name = "ns/" + id}});
  }
  void run(const std::string& pod, CpuSet cpus, Claims claims, bool exited = false) {
    ContainerFacts facts;
    facts.id = pod + "-app";
    facts.name = "app";
    facts.cpus = std::move(cpus);
    facts.exited = exited;
    ContainerSeen seen = whole_report(pod, facts);
    seen.claims = std::move(claims);
    ledger.apply({Source::kNri, std::move(seen)});
  }
  Change prepare(Claims claims) {
    return ledger.apply({Source::kDra, PreparedSeen{std::move(claims)}});
  }
  bool owns(const std::string& pod) const {
    const PodRecord& record = *ledger.find(pod);
    const ContainerRecord& container = record.containers.at(pod + "-app");
    const Ownership ownership = ledger.ownership_of(record, container);
    CHECK(ownership.basis == Basis::kDra);
    CHECK(ownership.exclusive == container.facts.exclusive);
    return ownership.exclusive;
  }
  std::vector<ClaimFault> faults() const {
    std::vector<ClaimFault> list;
    for (const RefusedClaims& one : refused_claims(ledger)) list.push_back(one.fault);
    return list;
  }

  Ledger ledger;
};

using Faults = std::vector<ClaimFault>;

}  // namespace

TEST_CASE("a claim's CPUs are exclusive from Prepare to Unprepare, whatever its container does") {
  Node node;
  node.add_pod("a");
  node.add_pod("b");
  CHECK(node.prepare({{"u1", {4, 5}}}).taken == CpuSet{4, 5});
  CHECK(node.ledger.exclusive_to_others("a") == CpuSet{4, 5});
  CHECK(node.ledger.unheld_claims() == Claims{{"u1", {4, 5}}});
  node.run("a", {4, 5}, {{"u1", {4, 5}}});
  CHECK(node.owns("a"));
  CHECK(node.ledger.exclusive_to("a") == CpuSet{4, 5});
  CHECK(node.ledger.exclusive_to_others("b") == CpuSet{4, 5});
  CHECK(node.ledger.unheld_claims().empty());
  CHECK(node.ledger.contested().empty());

  node.ledger.apply({Source::kNri, ContainerExited{"a", "a-app"}});
  CHECK(node.ledger.exclusive_to_others("b") == CpuSet{4, 5});
  node.ledger.apply({Source::kNri, ContainerGone{"a", "a-app"}});
  CHECK(node.ledger.exclusive_to_others("b") == CpuSet{4, 5});
  node.ledger.apply({Source::kNri, PodGone{"a"}});
  CHECK(node.ledger.exclusive() == CpuSet{4, 5});
  CHECK(node.prepare({}).exclusive_map);
  CHECK(node.ledger.exclusive().empty());
}

TEST_CASE("a container that exited loses its CPUs when its claim is unprepared, and is no forger") {
  Node node;
  node.add_pod("a");
  node.prepare({{"u1", {4, 5}}, {"u2", {6}}});
  node.run("a", {4, 5}, {{"u1", {4, 5}}}, true);
  CHECK(node.owns("a"));
  node.prepare({{"u2", {6}}});
  CHECK_FALSE(node.owns("a"));
  CHECK(node.ledger.exclusive() == CpuSet{6});
  CHECK(node.faults().empty());
}

TEST_CASE("until the driver has reported, a restart changes nothing of who owns what") {
  Node before;
  for (const char* pod : {"a", "b"}) before.add_pod(pod);
  before.prepare({{"u1", {4, 5}}});
  before.run("a", {4, 5}, {{"u1", {4, 5}}});
  before.run("b", {6, 7}, {{"u2", {6, 7}}});
  for (const Claims& claims : {Claims{{"u1", {4, 5}}}, Claims{}}) {
    Ledger ledger;
    for (const char* pod : {"a", "b"}) ledger.restore(*before.ledger.find(pod));
    CHECK(ledger.exclusive() == CpuSet{4, 5});
    CHECK(refused_claims(ledger).empty());
    ledger.apply({Source::kKubelet, KubeletSeen{}});
    CHECK(ledger.exclusive() == CpuSet{4, 5});
    ledger.apply({Source::kDra, PreparedSeen{claims}});
    CHECK(ledger.exclusive() == (claims.empty() ? CpuSet{} : CpuSet{4, 5}));
    CHECK(refused_claims(ledger).size() == (claims.empty() ? 2 : 1));
  }
}

TEST_CASE("a container may have several claims, and owns the CPUs of all") {
  Node node;
  node.add_pod("a");
  node.prepare({{"u1", {0, 4}}, {"u2", {2, 3, 6, 7}}});
  node.run("a", {0, 2, 3, 4, 6, 7}, {{"u1", {0, 4}}, {"u2", {2, 3, 6, 7}}});
  CHECK(node.owns("a"));
  CHECK(node.ledger.exclusive_to("a") == CpuSet{0, 2, 3, 4, 6, 7});
  // One of them is unprepared: what is left is nobody's in particular, and still reserved.
  node.prepare({{"u2", {2, 3, 6, 7}}});
  CHECK_FALSE(node.owns("a"));
  CHECK(node.ledger.exclusive() == CpuSet{2, 3, 6, 7});
  CHECK(node.faults() == Faults{ClaimFault::kNotPrepared});
}

TEST_CASE("an environment that a tenant wrote makes nobody an owner") {
  Node node;
  node.add_pod("a");
  node.add_pod("b");
  node.prepare({{"u1", {4, 5}}});
  node.run("a", {4, 5}, {{"u1", {4, 5}}});
  SECTION("a claim that does not exist") {
    node.run("b", {2, 3}, {{"u9", {2, 3}}});
    CHECK(node.faults() == Faults{ClaimFault::kNotPrepared});
  }
  SECTION("other CPUs than the claim has") {
    node.run("b", {2, 3, 4, 5}, {{"u1", {2, 3, 4, 5}}});
    CHECK(node.faults() == Faults{ClaimFault::kOtherCpus});
  }
  SECTION("another pod's entry, copied: its runtime did not give it the CPUs") {
    node.run("b", {0, 1, 2, 3, 6, 7}, {{"u1", {4, 5}}});
    CHECK(node.faults() == Faults{ClaimFault::kNotApplied});
  }
  SECTION("beside a quota that would be enough without it") {
    ContainerFacts facts;
    facts.id = "b-app";
    facts.cpus = {2, 3};
    facts.quota = 200000;
    facts.period = 100000;
    ContainerSeen seen = whole_report("b", facts);
    seen.claims = Claims{{"u1", {2, 3}}};
    node.ledger.apply({Source::kNri, std::move(seen)});
    CHECK(node.faults() == Faults{ClaimFault::kOtherCpus});
  }
  CHECK_FALSE(node.owns("b"));
  CHECK(node.owns("a"));
  CHECK(node.ledger.exclusive_to("a") == CpuSet{4, 5});
  CHECK(node.ledger.exclusive() == CpuSet{4, 5});
}

TEST_CASE("two containers that the runtime gave one claim contest it") {
  Node node;
  for (const char* pod : {"a", "b"}) {
    node.add_pod(pod);
    node.run(pod, {4, 5}, {{"u1", {4, 5}}});
  }
  node.prepare({{"u1", {4, 5}}});
  CHECK(node.ledger.contested() == CpuSet{4, 5});
  CHECK(node.ledger.exclusive_to("a").empty());
  CHECK(contests_of(node.ledger).front().contenders.size() == 2);
}

TEST_CASE("a claim on CPUs of another owner is contested, before any container names it") {
  Node node;
  node.add_pod("a");
  node.ledger.apply({Source::kKubelet, KubeletSeen{CpuSet{0, 1}, {{{"uid-a", "app", {4, 5}}}}}});
  node.prepare({{"u1", {5, 6}}});
  CHECK(node.ledger.contested() == CpuSet{5});
  const auto contests = contests_of(node.ledger);
  REQUIRE(contests.size() == 1);
  CHECK(contests.front().contenders.size() == 2);
  CHECK(std::ranges::count(contests.front().contenders, true, &Contender::is_claim) == 1);
}

TEST_CASE("while the driver gives out CPUs, a quota as large as the pool proves nothing") {
  Node node;
  node.add_pod("b");
  ContainerFacts facts;
  facts.id = "b-app";
  facts.cpus = {0, 1};
  facts.quota = 200000;
  facts.period = 100000;
  node.ledger.apply({Source::kNri, whole_report("b", facts)});
  CHECK(node.ledger.exclusive() == CpuSet{0, 1});
  node.prepare({{"u1", {2, 3}}});
  CHECK_FALSE(node.owns("b"));
  CHECK(node.ledger.exclusive() == CpuSet{2, 3});
}

TEST_CASE("what kubelet's state assigns stays, whatever the environment names") {
  Node node;
  node.add_pod("a");
  node.ledger.apply({Source::kKubelet, KubeletSeen{CpuSet{0, 1}, {{{"uid-a", "app", {4, 5}}}}}});
  node.run("a", {4, 5}, {{"u9", {4, 5}}});
  const PodRecord& pod = *node.ledger.find("a");
  CHECK(node.ledger.ownership_of(pod, pod.containers.at("a-app")) ==
        Ownership{true, Basis::kKubelet});
}

TEST_CASE("a report without an environment leaves the claims that are known") {
  Node node;
  node.add_pod("a");
  node.prepare({{"u1", {4, 5}}});
  node.run("a", {4, 5}, {{"u1", {4, 5}}});
  ContainerSeen update{.sandbox = "a", .id = "a-app", .spec = {}};
  update.spec.shares = 512;
  node.ledger.apply({Source::kNri, update});
  CHECK(node.owns("a"));
}

TEST_CASE("claims on every CPU leave no pool, and those who kept their cpusets no CPU to go to") {
  const CpuSet online = CpuSet::range(0, 7);
  Node node;
  node.add_pod("a");
  node.add_pod("b");
  node.run("b", online, {});
  // The driver's updates of other containers have an empty set then: they stay where they are.
  node.prepare({{"c1", {0, 1, 2, 3}}, {"c2", {4, 5, 6, 7}}});
  node.run("a", {0, 1, 2, 3}, {{"c1", {0, 1, 2, 3}}});
  CHECK(node.owns("a"));
  CHECK_FALSE(node.owns("b"));
  CHECK(node.ledger.shared_pool(online).empty());
  CHECK(node.ledger.exclusive_to_others("b") == online);
  CHECK(node.ledger.exclusive_to_others("a") == CpuSet{4, 5, 6, 7});
  node.prepare({{"c1", {0, 1, 2, 3}}});
  CHECK(node.ledger.shared_pool(online) == CpuSet{4, 5, 6, 7});
  CHECK(node.ledger.exclusive_to_others("b") == CpuSet{0, 1, 2, 3});
}
