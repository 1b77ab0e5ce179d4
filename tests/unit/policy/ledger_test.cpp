// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/ledger.hpp"

#include <ctime>
#include <string>

#include "policy/ledger/contests.hpp"
#include "tests/catch.hpp"
#include "tests/unit/policy/ledger_events.hpp"

using namespace ka::policy;
using namespace ka::policy::ledger;
using ka::tests::seen;

namespace {

/// As a container runtime tells it: nothing about exclusive or shared.
Event reported(const std::string& sandbox, const std::string& name, CpuSet cpus, int quota_cpus) {
  ContainerFacts facts;
  facts.id = sandbox + '-' + name;
  facts.name = name;
  facts.cpus = std::move(cpus);
  facts.period = 100000;
  facts.quota = quota_cpus > 0 ? quota_cpus * facts.period : -1;
  return {Source::kNri, whole_report(sandbox, facts)};
}

Event pod(const std::string& id) {
  return {Source::kNri, PodSeen{.id = id, .pod_uid = "uid-" + id}};
}

Event kubelet(std::vector<Claim> claims) {
  return {Source::kKubelet, KubeletSeen{CpuSet{0, 1}, std::move(claims)}};
}

bool exclusive(const Ledger& ledger, const std::string& sandbox, const std::string& name) {
  return ledger.find(sandbox)->containers.at(sandbox + '-' + name).facts.exclusive;
}

}  // namespace

TEST_CASE("exclusive CPUs belong to a pod and are foreign to the others") {
  Ledger ledger;
  CHECK(ledger.apply(seen("a", "a1", {2, 3}, true)).exclusive_map);
  CHECK_FALSE(ledger.apply(seen("b", "b1", {0, 1}, false)).exclusive_map);
  CHECK(ledger.exclusive_to_others("a").empty());
  CHECK(ledger.exclusive_to_others("b") == CpuSet{2, 3});
  CHECK(ledger.exclusive_to_others("unknown") == CpuSet{2, 3});
  CHECK(ledger.shared_pool(CpuSet::range(0, 7)) == CpuSet{0, 1, 4, 5, 6, 7});
}

TEST_CASE("a CPU that two pods claim is foreign to both until one releases it") {
  Ledger ledger;
  ledger.apply(seen("a", "a1", {2, 3}, true));
  ledger.apply(seen("b", "b1", {3, 4}, true));
  CHECK(ledger.exclusive_to_others("a") == CpuSet{3, 4});
  CHECK(ledger.exclusive_to_others("b") == CpuSet{2, 3});
  ledger.apply(seen("a", "a1", {2}, true));
  CHECK(ledger.exclusive_to_others("b") == CpuSet{2});
}

TEST_CASE("a contest names its pods, also one that only kubelet has reported") {
  Ledger ledger;
  ledger.apply(seen("a", "a1", {2, 3, 4}, true));
  ledger.apply(seen("b", "b1", {3, 4}, true));
  ledger.apply(
      {Source::kKubelet, KubeletSeen{CpuSet{0, 1}, std::vector<Claim>{{"u", "db", {4, 5}}}}});
  const auto contests = contests_of(ledger);
  REQUIRE(contests.size() == 2);
  CHECK(contests[0].cpus == CpuSet{4});
  CHECK(contests[0].contenders == std::vector<Contender>{{"", "u", "db", false, "u"},
                                                         {"a", "a", "a1", false, "a"},
                                                         {"b", "b", "b1", false, "b"}});
  CHECK(contests[1].cpus == CpuSet{3});
  ledger.apply({Source::kApi, PodGone{"b"}});
  ledger.apply({Source::kKubelet, KubeletSeen{}});
  CHECK(contests_of(ledger).empty());
}

TEST_CASE("a container that is reported is the contender that kubelet had named before") {
  Ledger ledger;
  ledger.apply(seen("a", "a1", {2}, true));
  ledger.apply(kubelet({{"uid-b", "app", {2}}}));
  const auto before = contests_of(ledger);
  REQUIRE(before.size() == 1);
  ledger.apply(pod("b"));
  ledger.apply(reported("b", "app", {2}, 1));
  const auto after = contests_of(ledger);
  REQUIRE(after.size() == 1);
  CHECK(after != before);
  CHECK_FALSE(has_new_contender(after.front(), before));
}

TEST_CASE("an init container's CPUs are contested only by what runs beside it") {
  Ledger ledger;
  ledger.apply(seen("a", "init", {2, 3}, true));
  ledger.apply(seen("a", "app", {3, 4}, true));
  CHECK(contested_within(*ledger.find("a")) == CpuSet{3});
  ledger.apply({Source::kApi, ContainerExited{"a", "init"}});
  CHECK(contests_of(ledger).empty());
}

TEST_CASE("the exit of a container that is not known, or has exited, changes nothing") {
  Ledger ledger;
  CHECK_FALSE(ledger.apply({Source::kApi, ContainerExited{"a", "app"}}).any);
  ledger.apply(seen("a", "app", {3, 4}, true));
  CHECK_FALSE(ledger.apply({Source::kApi, ContainerExited{"a", "other"}}).any);
  CHECK(ledger.apply({Source::kApi, ContainerExited{"a", "app"}}).any);
  CHECK_FALSE(ledger.apply({Source::kApi, ContainerExited{"a", "app"}}).any);
}

TEST_CASE("containers share the rest of what their pod owns as a whole without a contest") {
  Ledger ledger;
  ledger.apply(pod("a"));
  ledger.apply(kubelet({{"uid-a", "", {4, 5, 6, 7}},
                        {"uid-a", "app", {4, 5}},
                        {"uid-a", "log", {6, 7}},
                        {"uid-a", "proxy", {6, 7}}}));
  ledger.apply(reported("a", "app", {4, 5}, 2));
  ledger.apply(reported("a", "log", {6, 7}, 0));
  ledger.apply(reported("a", "proxy", {6, 7}, 0));
  CHECK(contests_of(ledger).empty());
  CHECK(ledger.exclusive_to_others("b") == CpuSet{4, 5, 6, 7});
  ledger.apply(reported("a", "proxy", {5, 6, 7}, 0));
  CHECK(cpus_of(contests_of(ledger)) == CpuSet{5});
}

TEST_CASE("a container that is resized keeps what it has until its runtime says otherwise") {
  Ledger ledger;
  ledger.apply(pod("a"));
  ledger.apply(kubelet({{"uid-a", "app", {4, 5}}}));
  ledger.apply(reported("a", "app", {4, 5}, 2));
  SECTION("it grows: the new CPUs are its own before the runtime knows") {
    const auto change = ledger.apply(kubelet({{"uid-a", "app", {4, 5, 6}}}));
    CHECK(change.taken == CpuSet{6});
    CHECK(exclusive(ledger, "a", "app"));
    CHECK(ledger.exclusive_to_others("b") == CpuSet{4, 5, 6});
  }
  SECTION("it shrinks to what it was promised: the rest is free once the runtime has done it") {
    ledger.apply(kubelet({{"uid-a", "app", {4}}}));
    CHECK(exclusive(ledger, "a", "app"));
    CHECK(ledger.exclusive_to_others("b") == CpuSet{4, 5});
    ledger.apply(reported("a", "app", {4}, 1));
    CHECK(ledger.exclusive() == CpuSet{4});
  }
}

TEST_CASE("a source that reports no exits proves no contest within a pod") {
  Ledger ledger;
  for (Event event : {seen("a", "init", {2, 3}, true), seen("a", "app", {3, 4}, true)}) {
    event.source = Source::kPersist;
    ledger.apply(event);
  }
  CHECK(contests_of(ledger).empty());
}

TEST_CASE("two containers of one pod may share exclusive CPUs") {
  Ledger ledger;
  ledger.apply(seen("a", "init", {2, 3}, true));
  ledger.apply(seen("a", "app", {2, 3, 4}, true));
  CHECK(ledger.exclusive_to_others("a").empty());
  const Change change = ledger.apply({Source::kApi, ContainerGone{"a", "init"}});
  CHECK(change.any);
  CHECK_FALSE(change.exclusive_map);
  CHECK(ledger.exclusive() == CpuSet{2, 3, 4});
}

TEST_CASE("an exited container keeps its CPUs reserved, a removed one frees them") {
  Ledger ledger;
  ledger.apply(seen("a", "a1", {2, 3}, true));
  CHECK_FALSE(ledger.apply({Source::kApi, ContainerExited{"a", "a1"}}).exclusive_map);
  CHECK(ledger.exclusive_to_others("b") == CpuSet{2, 3});
  CHECK(ledger.apply({Source::kApi, PodGone{"a"}}).exclusive_map);
  CHECK(ledger.exclusive().empty());
}

TEST_CASE("a repeated report changes nothing, from any source") {
  Ledger ledger;
  Event event = seen("a", "a1", {2}, true);
  CHECK(ledger.apply(event).any);
  event.source = Source::kNri;
  CHECK_FALSE(ledger.apply(event).any);
  CHECK(
      ledger.apply({Source::kApi, PodSeen{.id = "a", .pod_uid = "u", .vmm = ProcessId{7, 1}}}).any);
  CHECK_FALSE(ledger.apply({Source::kNri, PodSeen{.id = "a", .vmm = ProcessId{7, 1}}}).any);
  CHECK(ledger.find("a")->pod_uid == "u");
}

TEST_CASE("kubelet's shared pool never extends over exclusive CPUs") {
  Ledger ledger;
  CHECK(ledger.apply({Source::kKubelet, KubeletSeen{CpuSet{0, 1, 2}, std::nullopt}}).exclusive_map);
  ledger.apply(seen("a", "a1", {2}, true));
  CHECK(ledger.shared_pool(CpuSet::range(0, 7)) == CpuSet{0, 1});
}

TEST_CASE(
    "kubelet's list decides, whatever the quota says, also for pods of which nobody told yet") {
  Ledger ledger;
  for (const char* id : {"a", "b"}) ledger.apply(pod(id));
  ledger.apply(reported("a", "app", {4, 5}, 0));
  ledger.apply(reported("a", "side", {0, 1}, 2));
  CHECK_FALSE(exclusive(ledger, "a", "app"));
  CHECK(exclusive(ledger, "a", "side"));
  const Change change =
      ledger.apply(kubelet({{"uid-a", "app", {4, 5}}, {"uid-new", "app", {6, 7}}}));
  CHECK(change.any);
  CHECK(change.exclusive_map);
  CHECK(exclusive(ledger, "a", "app"));
  CHECK_FALSE(exclusive(ledger, "a", "side"));
  CHECK(ledger.exclusive_to_others("b") == CpuSet{4, 5, 6, 7});
  CHECK(ledger.exclusive_to_others("a") == CpuSet{6, 7});
  ledger.apply(pod("new"));
  CHECK(ledger.exclusive_to_others("new") == CpuSet{4, 5});
  CHECK_FALSE(ledger.apply(reported("new", "app", {6, 7}, 0)).exclusive_map);
  CHECK(exclusive(ledger, "new", "app"));
}

TEST_CASE("CPUs that kubelet no longer lists are free, also of an exited container") {
  Ledger ledger;
  ledger.apply(pod("a"));
  ledger.apply(reported("a", "init", {4}, 1));
  ledger.apply(kubelet({{"uid-a", "init", {4}}}));
  ledger.apply({Source::kNri, ContainerExited{"a", "a-init"}});
  CHECK(ledger.exclusive() == CpuSet{4});
  CHECK(ledger.apply(kubelet({})).exclusive_map);
  CHECK(ledger.exclusive().empty());
  CHECK_FALSE(ledger.apply(kubelet({})).any);
}

TEST_CASE("an exited container keeps its CPUs in kubelet's file, not those it ran on") {
  Ledger ledger;
  for (const char* id : {"a", "b"}) ledger.apply(pod(id));
  ledger.apply(kubelet({{"uid-a", "app", {2, 3}}, {"uid-a", "init", {2, 3}}}));
  ledger.apply(reported("a", "init", {2, 3}, 2));
  ledger.apply({Source::kNri, ContainerExited{"a", "a-init"}});
  ledger.apply(reported("a", "app", {2, 3}, 2));
  // kubelet lost its file, and gives the CPUs anew.
  ledger.apply(
      kubelet({{"uid-a", "app", {4, 5}}, {"uid-a", "init", {4, 5}}, {"uid-b", "app", {2, 3}}}));
  ledger.apply(reported("b", "app", {2, 3}, 2));
  ledger.apply(reported("a", "app", {4, 5}, 2));
  CHECK_FALSE(exclusive(ledger, "a", "init"));
  CHECK(ledger.exclusive_to_others("a") == CpuSet{2, 3});
  CHECK(ledger.exclusive_to_others("b") == CpuSet{4, 5});
}

TEST_CASE("an init container's CPUs stay its pod's when another container gets them") {
  Ledger ledger;
  ledger.apply(pod("a"));
  ledger.apply(kubelet({{"uid-a", "app", {4, 5, 6}}, {"uid-a", "init", {4, 5}}}));
  ledger.apply(reported("a", "init", {4, 5}, 2));
  ledger.apply(reported("a", "app", {4, 5, 6}, 3));
  CHECK(ledger.exclusive_to_others("a").empty());
  CHECK_FALSE(ledger.apply({Source::kNri, ContainerGone{"a", "a-init"}}).exclusive_map);
  CHECK(ledger.exclusive() == CpuSet{4, 5, 6});
}

TEST_CASE("CPUs owned by a pod as a whole are shared by its containers only") {
  Ledger ledger;
  ledger.apply(pod("a"));
  ledger.apply(reported("a", "one", {4, 5}, 2));
  ledger.apply(kubelet({{"uid-a", "", {4, 5}}}));
  CHECK_FALSE(exclusive(ledger, "a", "one"));
  CHECK(ledger.exclusive_to_others("b") == CpuSet{4, 5});
  CHECK(ledger.exclusive_to_others("a").empty());
}

TEST_CASE("kubelet's first format names containers by id") {
  Ledger ledger;
  ledger.apply(pod("a"));
  ledger.apply(reported("a", "app", {4}, 0));
  ledger.apply(kubelet({{"", "a-app", {4}}}));
  CHECK(exclusive(ledger, "a", "app"));
  CHECK(ledger.exclusive_to_others("a").empty());
}

TEST_CASE("without kubelet's list a set that another pod also has is a pool, not exclusive") {
  Ledger ledger;
  ledger.apply(reported("a", "one", {0, 1, 2}, 3));
  CHECK(exclusive(ledger, "a", "one"));
  CHECK(ledger.apply(reported("b", "two", {0, 1, 2}, 0)).exclusive_map);
  CHECK_FALSE(exclusive(ledger, "a", "one"));
  // Containers of one pod may well share what the pod owns.
  ledger.apply(reported("c", "init", {4}, 1));
  ledger.apply(reported("c", "app", {4}, 1));
  CHECK(exclusive(ledger, "c", "app"));
  // A wider set of the pool, not rewritten yet, says nothing against an owner.
  ledger.apply(reported("d", "late", {3, 4, 5}, 0));
  CHECK(exclusive(ledger, "c", "app"));
}

TEST_CASE("an operator's statement overrides kubelet's") {
  Ledger ledger;
  ledger.apply(seen("a", "a1", {2}, true));
  ledger.apply(kubelet({}));
  CHECK(ledger.exclusive() == CpuSet{2});
}

TEST_CASE("kubelet's list decides, whichever source reports the container") {
  for (const Source source : {Source::kNri, Source::kProxy, Source::kPersist, Source::kApi}) {
    CAPTURE(source_name(source));
    Ledger ledger;
    ledger.apply({source, PodSeen{.id = "a", .pod_uid = "uid-a"}});
    // kubelet >= 1.33 gives a Guaranteed container no quota; a burstable one's may equal the pool.
    Event guaranteed = reported("a", "app", {4, 5}, 0);
    Event burstable = reported("a", "side", {0, 1}, 2);
    guaranteed.source = burstable.source = source;
    ledger.apply(guaranteed);
    ledger.apply(burstable);
    ledger.apply(kubelet({{"uid-a", "app", {4, 5}}}));
    CHECK(exclusive(ledger, "a", "app"));
    CHECK_FALSE(exclusive(ledger, "a", "side"));
    CHECK(ledger.exclusive() == CpuSet{4, 5});
  }
}

TEST_CASE("a higher-ranking source is not overwritten while connected") {
  Ledger ledger;
  const auto report = [&](Source source, CpuSet cpus) {
    Event event = reported("a", "app", std::move(cpus), 0);
    event.source = source;
    return ledger.apply(event).any;
  };
  const auto record = [&] { return ledger.find("a")->containers.at("a-app"); };
  ledger.set_connected(Source::kNri, true);
  CHECK(report(Source::kPersist, {1}));
  CHECK(report(Source::kProxy, {2}));
  CHECK_FALSE(report(Source::kPersist, {1}));
  CHECK(report(Source::kNri, {3}));
  CHECK_FALSE(report(Source::kProxy, {2}));
  CHECK_FALSE(report(Source::kPersist, {1}));
  CHECK(record().source == Source::kNri);
  CHECK(record().facts.cpus == CpuSet{3});
  // A person may always speak, and the runtime after that.
  CHECK(report(Source::kApi, {4}));
  CHECK(report(Source::kNri, {3}));
  // What a runtime said that is not there any more gives way.
  ledger.set_connected(Source::kNri, false);
  CHECK(report(Source::kProxy, {5}));
  CHECK(record().source == Source::kProxy);
}

TEST_CASE("state from before a restart gives way to any report") {
  Ledger before;
  before.apply(pod("a"));
  before.apply(reported("a", "app", {4}, 0));
  Ledger after;
  after.restore(*before.find("a"));
  after.set_connected(Source::kNri, true);
  Event late = reported("a", "app", {5}, 0);
  late.source = Source::kPersist;
  CHECK(after.apply(late).any);
  CHECK(after.find("a")->containers.at("a-app").facts.cpus == CpuSet{5});
}

TEST_CASE("an operator's ownership survives a restart") {
  Ledger before;
  before.apply({Source::kApi, PodSeen{.id = "a", .pod_uid = "uid-a"}});
  before.apply(seen("a", "a1", {2}, true));
  Ledger after;
  after.restore(*before.find("a"));
  after.apply(kubelet({}));
  CHECK(after.exclusive() == CpuSet{2});
}

TEST_CASE("ownership from before a restart holds until its source reports again") {
  Ledger before;
  before.apply(pod("a"));
  before.apply(kubelet({{"uid-a", "app", {4}}}));
  before.apply(reported("a", "app", {4}, 0));
  Ledger after;
  after.restore(*before.find("a"));
  CHECK(after.exclusive() == CpuSet{4});
  after.apply(reported("b", "x", {0}, 0));
  CHECK(exclusive(after, "a", "app"));
  after.apply(reported("a", "app", {4}, 0));
  CHECK_FALSE(exclusive(after, "a", "app"));
}

TEST_CASE("a quota equal to all CPUs of the cpuset means exclusive") {
  ContainerFacts facts;
  facts.cpus = {2, 3};
  facts.period = 100000;
  facts.quota = 200000;
  CHECK(exclusive_by_quota(facts));
  facts.quota = 150000;
  CHECK_FALSE(exclusive_by_quota(facts));
  facts.quota = -1;
  CHECK_FALSE(exclusive_by_quota(facts));
  // Four times this period is more than 64 bits hold, and would wrap around to the quota.
  facts.cpus = {2, 3, 4, 5};
  facts.period = (std::int64_t{1} << 62) + 100000;
  facts.quota = 400000;
  CHECK_FALSE(exclusive_by_quota(facts));
}

TEST_CASE("a manual pin replaces the previous one and is removed by an empty one") {
  Ledger ledger;
  ledger.apply({Source::kApi, PodSeen{.id = "a"}});
  CHECK(ledger.apply({Source::kApi, OverrideSet{"a", {{Role::kVcpu, 1, "", {4}}}}}).any);
  CHECK(ledger.apply({Source::kApi, OverrideSet{"a", {{Role::kVcpu, 1, "", {5}}}}}).any);
  CHECK(ledger.find("a")->overrides == std::vector<Pin>{{{Role::kVcpu, 1, "", {5}}}});
  CHECK(ledger.apply({Source::kApi, OverrideSet{"a", {{Role::kVcpu, 1, "", {}}}}}).any);
  CHECK(ledger.find("a")->overrides.empty());
  CHECK_FALSE(ledger.apply({Source::kApi, OverrideSet{"none", {{Role::kVcpu, 1, "", {4}}}}}).any);
}

TEST_CASE("an update without a container's name keeps the name") {
  Ledger ledger;
  ContainerFacts facts;
  facts.id = "c1";
  facts.name = "app";
  ledger.apply({Source::kNri, whole_report("s1", facts, true)});
  facts.name.clear();
  facts.cpus = {2, 3};
  CHECK(ledger.apply({Source::kApi, whole_report("s1", facts, true)}).any);
  CHECK(ledger.find("s1")->containers.at("c1").facts.name == "app");
  CHECK_FALSE(ledger.apply({Source::kApi, whole_report("s1", facts, true)}).any);
}

TEST_CASE("fields missing from a report keep their values, from any source") {
  Ledger ledger;
  ContainerFacts facts{.id = "c1", .name = "app", .cpus = {2, 3}, .mems = {1}};
  facts.quota = 200000;
  facts.period = 100000;
  facts.exited = true;
  ledger.apply({Source::kPersist, whole_report("s1", facts)});
  const auto& known = ledger.find("s1")->containers.at("c1");
  const auto report = [&](ContainerSpec spec, ContainerSpec before = {}) {
    return ledger
        .apply({Source::kNri, ContainerSeen{.sandbox = "s1",
                                            .id = "c1",
                                            .spec = std::move(spec),
                                            .before = std::move(before)}})
        .any;
  };
  const bool was_exclusive = known.facts.exclusive;
  CHECK_FALSE(report({}, {.cpus = CpuSet{7}, .quota = 1}));  // it is known: what it had counts not
  CHECK(known.source == Source::kNri);
  facts.exclusive = was_exclusive;
  CHECK(known.facts == facts);
  CHECK(report({.cpus = CpuSet{}}));
  facts.cpus = {};
  CHECK(known.facts.cpus.empty());
  CHECK(known.facts.quota == 200000);
  CHECK(report({.mems = NodeSet{0}, .period = 50000, .exited = false}));
  CHECK(known.facts.mems == NodeSet{0});
  CHECK(known.facts.period == 50000);
  CHECK_FALSE(known.facts.exited);
}

TEST_CASE("an update of a container unknown to the ledger keeps the state it had") {
  Ledger ledger;
  ContainerSeen update{.sandbox = "s1", .id = "c1", .spec = {.quota = 300000}};
  update.before = {.name = "app", .cpus = CpuSet{4, 5}, .quota = 200000, .period = 100000};
  ledger.apply({Source::kNri, update});
  const auto& facts = ledger.find("s1")->containers.at("c1").facts;
  CHECK(facts.cpus == CpuSet{4, 5});
  CHECK(facts.quota == 300000);
  CHECK(facts.period == 100000);
  CHECK(facts.name == "app");
}

TEST_CASE("an event is not slower with 3000 pods") {
  Ledger ledger;
  const std::clock_t start = std::clock();
  for (int i = 0; i < 3000; ++i) {
    const std::string id = "pod" + std::to_string(i);
    ledger.apply(pod(id));
    ledger.apply(reported(id, "app", i % 2 == 0 ? CpuSet{0, 1} : CpuSet{0, 1, 2}, 2));
    ledger.apply(reported(id, "side", {i % 100 + 4}, 1));
  }
  ledger.apply(kubelet({{"uid-pod7", "app", {2, 3}}}));
  for (int i = 0; i < 3000; ++i) ledger.apply(reported("pod7", "app", {2, 3, i % 60}, 0));
  CHECK(exclusive(ledger, "pod7", "app"));
  CHECK(ledger.exclusive_to_others("pod8").contains(3));
  // Looking at every pod for every event took minutes.
  CHECK((std::clock() - start) / CLOCKS_PER_SEC < 10);
}
