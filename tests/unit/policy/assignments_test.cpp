// SPDX-License-Identifier: Apache-2.0
// Who owns a container's CPUs where kubelet's state file does not say it.
#include "policy/ledger/assignments.hpp"

#include <string>
#include <vector>

#include "policy/ledger/contests.hpp"
#include "policy/ledger/ledger.hpp"
#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::ledger;

namespace {

constexpr int kPeriod = 100000;

Event pod(const std::string& id, const std::string& name) {
  return {Source::kNri, PodSeen{.id = id, .pod_uid = "uid-" + id, .pod_name = name}};
}

/// As kubelet 1.33 and later has it: no quota, and shares for the CPUs that it requests.
Event container(const std::string& sandbox, const std::string& name, CpuSet cpus, int shares) {
  ContainerFacts facts;
  facts.id = sandbox + '-' + name;
  facts.name = name;
  facts.cpus = std::move(cpus);
  facts.quota = -1;
  facts.period = kPeriod;
  facts.shares = shares;
  return {Source::kNri, whole_report(sandbox, facts)};
}

Event resources(std::vector<Assignment> assignments, CpuSet allocatable = CpuSet::range(2, 7)) {
  return {Source::kPodResources, ResourcesSeen{std::move(allocatable), std::move(assignments)}};
}

Ownership ownership_of(const Ledger& ledger, const std::string& sandbox, const std::string& name) {
  const PodRecord& record = *ledger.find(sandbox);
  const ContainerRecord& found = record.containers.at(sandbox + '-' + name);
  const Ownership ownership = ledger.ownership_of(record, found);
  CHECK(found.facts.exclusive == ownership.exclusive);
  return ownership;
}

}  // namespace

TEST_CASE("without quota and kubelet, a request of the whole set that nobody else has decides") {
  Ledger ledger;
  ledger.apply(pod("a", "ns/a"));
  ledger.apply(container("a", "app", {4, 5}, 2048));
  CHECK(ownership_of(ledger, "a", "app") == Ownership{true, Basis::kRequest, true});
  ledger.apply(container("a", "side", {0, 1, 2, 3}, 2));
  CHECK(ownership_of(ledger, "a", "side") == Ownership{false, Basis::kSet, false});
  ledger.apply(container("a", "unsaid", {6}, 0));
  CHECK(ownership_of(ledger, "a", "unsaid") == Ownership{false, Basis::kSet, true});
  // A burstable container that requests the whole pool is one of several there.
  ledger.apply(pod("b", "ns/b"));
  ledger.apply(container("b", "app", {4, 5}, 2));
  CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, false});
}

TEST_CASE("shares have a maximum") {
  ContainerFacts facts;
  facts.quota = -1;
  facts.cpus = CpuSet::range(0, 299);
  facts.shares = 262144;
  CHECK(exclusive_by_request(facts));
  facts.quota = 1;
  CHECK_FALSE(exclusive_by_request(facts));
}

TEST_CASE("PodResources decides where kubelet's state does not, and not where it does") {
  Ledger ledger;
  ledger.apply(pod("a", "ns/a"));
  ledger.apply(container("a", "app", {4, 5}, 0));
  ledger.apply(container("a", "side", {6, 7}, 2048));
  CHECK(ledger.apply(resources({{"ns/a", "app", {4, 5}}, {"ns/a", "side", {}}})).taken ==
        CpuSet{4, 5});
  CHECK(ownership_of(ledger, "a", "app") == Ownership{true, Basis::kPodResources});
  CHECK(ownership_of(ledger, "a", "side") == Ownership{false, Basis::kPodResources});
  CHECK(ledger.exclusive() == CpuSet{4, 5});
  ledger.apply({Source::kKubelet, KubeletSeen{CpuSet{0, 1}, std::vector<Claim>{}}});
  CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kKubelet});
  CHECK(ledger.exclusive().empty());
}

TEST_CASE("without a static policy PodResources has no CPUs") {
  Ledger ledger;
  ledger.apply(pod("a", "ns/a"));
  ledger.apply(container("a", "app", {4, 5}, 2048));
  ledger.apply(resources({{"ns/a", "app", {}}}, {}));
  CHECK(ownership_of(ledger, "a", "app").basis == Basis::kRequest);
}

TEST_CASE("a file that cannot be read any more keeps its claims and denies nothing") {
  Ledger ledger;
  ledger.apply(pod("a", "ns/a"));
  ledger.apply(pod("b", "ns/b"));
  ledger.apply(container("a", "app", {4}, 0));
  KubeletSeen seen{CpuSet{0, 1}, std::vector<Claim>{{"uid-a", "app", {4}}}};
  ledger.apply({Source::kKubelet, seen});
  ledger.apply(container("b", "app", {5}, 1024));
  CHECK(ownership_of(ledger, "b", "app") == Ownership{false, Basis::kKubelet});
  seen.outdated = true;
  ledger.apply({Source::kKubelet, seen});
  CHECK(ownership_of(ledger, "a", "app") == Ownership{true, Basis::kKubelet});
  CHECK(ownership_of(ledger, "b", "app").basis == Basis::kRequest);
  ledger.apply(resources({{"ns/b", "app", {5}}}));
  CHECK(ownership_of(ledger, "b", "app") == Ownership{true, Basis::kPodResources});
}

TEST_CASE("a name that two sandboxes bear proves nothing, until one is gone") {
  Ledger ledger;
  ledger.apply(pod("a", "ns/web-0"));
  ledger.apply(container("a", "app", {4}, 0));
  ledger.apply(resources({{"ns/web-0", "app", {4}}}));
  CHECK(ownership_of(ledger, "a", "app").exclusive);
  ledger.apply(pod("b", "ns/web-0"));
  CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, true});
  ledger.apply({Source::kNri, PodGone{"b"}});
  CHECK(ownership_of(ledger, "a", "app").exclusive);
}

TEST_CASE("a pod that PodResources names first owns its CPUs, and none once it is gone") {
  Ledger ledger;
  ledger.apply(pod("other", "ns/other"));
  CHECK(ledger.apply(resources({{"ns/a", "app", {4, 5}}})).taken == CpuSet{4, 5});
  CHECK(ledger.exclusive_to_others("other") == CpuSet{4, 5});
  CHECK(ledger.unreported_claims() == std::vector<Claim>{{"ns/a", "app", {4, 5}}});
  ledger.apply(pod("a", "ns/a"));
  ledger.apply(container("a", "app", {4, 5}, 0));
  CHECK(ledger.exclusive_to_others("a").empty());
  CHECK(ledger.unreported_claims().empty());
  ledger.apply({Source::kNri, PodGone{"a"}});
  CHECK(ledger.exclusive().empty());
  CHECK(contests_of(ledger).empty());
}

TEST_CASE("a container that PodResources does not list is judged without it") {
  Ledger ledger;
  ledger.apply(pod("a", "ns/a"));
  ledger.apply(resources({{"ns/a", "app", {4, 5}}}));
  ledger.apply(container("a", "init", {4, 5}, 2048));
  CHECK(ownership_of(ledger, "a", "init").basis == Basis::kRequest);
}

TEST_CASE("the same answer of PodResources changes nothing") {
  Ledger ledger;
  CHECK(ledger.apply(resources({{"ns/a", "app", {4, 5}, {}}})).any);
  CHECK_FALSE(ledger.apply(resources({{"ns/a", "app", {4, 5}, {}}})).any);
  CHECK(ledger.apply(resources({{"ns/a", "app", {4}, {}}})).any);
}

TEST_CASE("CPUs whose owner is in doubt are withheld from others, as long as that lasts") {
  const CpuSet online = CpuSet::range(0, 7);
  Ledger ledger;
  ledger.apply(pod("a", "ns/a"));
  ledger.apply(pod("b", "ns/b"));
  CHECK(ledger.apply(container("a", "app", {4, 5}, 0)).exclusive_map);
  CHECK(ledger.exclusive().empty());
  CHECK(ledger.doubted_to_others("a", online).empty());
  CHECK(ledger.doubted_to_others("b", online) == CpuSet{4, 5});
  CHECK(ledger.doubted_to_others("unknown", online) == CpuSet{4, 5});
  CHECK(ledger.shared_pool(online) == online);
  SECTION("a source decides") {
    CHECK(ledger.apply(resources({{"ns/a", "app", {}}})).exclusive_map);
    CHECK(ledger.doubted_to_others("b", online).empty());
  }
  SECTION("another pod has the set: it is the pool") {
    CHECK(ledger.apply(container("b", "app", {4, 5}, 2)).exclusive_map);
    CHECK(ledger.doubted_to_others("b", online).empty());
  }
  SECTION("it exits") {
    ledger.apply({Source::kNri, ContainerExited{"a", "a-app"}});
    CHECK(ledger.doubted_to_others("b", online).empty());
  }
  SECTION("it goes") {
    ledger.apply({Source::kNri, PodGone{"a"}});
    CHECK(ledger.doubted_to_others("b", online).empty());
  }
  SECTION("it has all CPUs: nobody would have any") {
    ledger.apply(container("a", "app", online, 0));
    CHECK(ledger.doubted_to_others("b", online).empty());
  }
  SECTION("after a restart it is still in doubt, until its source has reported it") {
    Ledger next;
    next.restore(*ledger.find("a"));
    next.restore(*ledger.find("b"));
    CHECK(next.doubted_to_others("b", online) == CpuSet{4, 5});
    next.apply(container("a", "app", {4, 5}, 2));
    CHECK(next.doubted_to_others("b", online).empty());
  }
}

TEST_CASE("a container that an operator described leaves no doubt") {
  Ledger ledger;
  Event given = container("a", "app", {4, 5}, 0);
  given.source = Source::kApi;
  ledger.apply(given);
  CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, false});
  CHECK(ledger.doubted_to_others("b", CpuSet::range(0, 15)).empty());
}

TEST_CASE("a set with the pool in it is not taken for a container's own") {
  Ledger ledger;
  ledger.apply(pod("a", "ns/a"));
  ledger.apply(pod("b", "ns/b"));
  SECTION("kubelet gives no reserved CPU to a container, whatever its request or quota") {
    ledger.apply(resources({}));
    ledger.apply(container("a", "app", {1, 2}, 2048));
    CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, false});
    ledger.apply(container("a", "app", {1, 2}, 0));
    CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, false});
  }
  SECTION("all that was left to give out may be the pool, or have been given out since") {
    ledger.apply(resources({{"ns/b", "app", {2, 3}}}));
    ledger.apply(container("a", "app", {4, 5, 6, 7}, 4096));
    CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, true});
    CHECK(ledger.doubted_to_others("b", CpuSet::range(0, 15)) == CpuSet{4, 5, 6, 7});
    ledger.apply(resources({{"ns/b", "app", {2}}}));
    CHECK(ownership_of(ledger, "a", "app") == Ownership{true, Basis::kRequest, true});
  }
  SECTION("so may all of the pool that kubelet's file had last; what requests nothing is there") {
    KubeletSeen state{CpuSet::range(0, 3), std::vector<Claim>{}, true};
    ledger.apply({Source::kKubelet, state});
    ledger.apply(container("a", "app", {0, 1, 2, 3}, 4096));
    CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, true});
    ledger.apply(container("a", "app", {0, 1, 2, 3}, 0));
    CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, false});
    CHECK(ledger.doubted_to_others("b", CpuSet::range(0, 15)).empty());
    state.shared_pool = CpuSet::range(0, 7);
    CHECK(ledger.apply({Source::kKubelet, state}).exclusive_map);
    CHECK(ledger.doubted_to_others("b", CpuSet::range(0, 15)) == CpuSet::range(0, 3));
    CHECK(ownership_of(ledger, "a", "app") == Ownership{false, Basis::kSet, true});
  }
}

TEST_CASE("the pool's version changes with allocatable CPUs and what is left of them") {
  Assignments assignments;
  const auto version = [&](const ResourcesSeen& seen) {
    assignments.replace(seen);
    return assignments.pool_version();
  };
  const Assignment two{.pod = "shop/a", .container = "app", .cpus = {2, 3}};
  const auto first = version({CpuSet::range(0, 7), {two}});
  CHECK(version({CpuSet::range(0, 7), {two}}) == first);
  Assignment renamed = two;
  renamed.container = "other";
  CHECK(version({CpuSet::range(0, 7), {renamed}}) == first);
  const auto more = version({CpuSet::range(0, 8), {renamed}});
  CHECK(more != first);
  CHECK(version({CpuSet::range(0, 8), {}}) != more);
}
