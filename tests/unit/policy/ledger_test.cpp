#include "policy/ledger/ledger.hpp"

#include "tests/catch.hpp"

using namespace ka::policy;

namespace {

Event seen(const std::string& sandbox, const std::string& id, CpuSet cpus, bool exclusive) {
  ContainerFacts facts;
  facts.id = id;
  facts.cpus = std::move(cpus);
  return {Source::kApi, ContainerSeen{sandbox, facts, exclusive}};
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

TEST_CASE("a CPU that two pods claim is foreign to both until one lets go") {
  Ledger ledger;
  ledger.apply(seen("a", "a1", {2, 3}, true));
  ledger.apply(seen("b", "b1", {3, 4}, true));
  CHECK(ledger.exclusive_to_others("a") == CpuSet{3, 4});
  CHECK(ledger.exclusive_to_others("b") == CpuSet{2, 3});
  ledger.apply(seen("a", "a1", {2}, true));
  CHECK(ledger.exclusive_to_others("b") == CpuSet{2});
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

TEST_CASE("an exited container keeps its CPUs reserved, a removed one gives them back") {
  Ledger ledger;
  ledger.apply(seen("a", "a1", {2, 3}, true));
  CHECK_FALSE(ledger.apply({Source::kApi, ContainerExited{"a", "a1"}}).exclusive_map);
  CHECK(ledger.exclusive_to_others("b") == CpuSet{2, 3});
  CHECK(ledger.apply({Source::kApi, PodGone{"a"}}).exclusive_map);
  CHECK(ledger.exclusive().empty());
}

TEST_CASE("saying the same again changes nothing, whoever says it") {
  Ledger ledger;
  Event event = seen("a", "a1", {2}, true);
  CHECK(ledger.apply(event).any);
  event.source = Source::kNri;
  CHECK_FALSE(ledger.apply(event).any);
  CHECK(ledger.apply({Source::kApi, PodSeen{.id = "a", .pod_uid = "u", .vmm_pid = 7}}).any);
  CHECK_FALSE(ledger.apply({Source::kNri, PodSeen{.id = "a", .vmm_pid = 7}}).any);
  CHECK(ledger.find("a")->pod_uid == "u");
}

TEST_CASE("kubelet's shared pool is never stretched over exclusive CPUs") {
  Ledger ledger;
  CHECK(ledger.apply({Source::kKubelet, SharedPoolSeen{{0, 1, 2}}}).exclusive_map);
  ledger.apply(seen("a", "a1", {2}, true));
  CHECK(ledger.shared_pool(CpuSet::range(0, 7)) == CpuSet{0, 1});
}

TEST_CASE("a quota of as many whole CPUs as the cpuset has means exclusive") {
  ContainerFacts facts;
  facts.cpus = {2, 3};
  facts.period = 100000;
  facts.quota = 200000;
  CHECK(exclusive_by_quota(facts));
  facts.quota = 150000;
  CHECK_FALSE(exclusive_by_quota(facts));
  facts.quota = -1;
  CHECK_FALSE(exclusive_by_quota(facts));
}

TEST_CASE("a set by hand replaces the one before it and is taken back by an empty one") {
  Ledger ledger;
  ledger.apply({Source::kApi, PodSeen{.id = "a"}});
  CHECK(ledger.apply({Source::kApi, OverrideSet{"a", {Role::kVcpu, 1, "", {4}}}}).any);
  CHECK(ledger.apply({Source::kApi, OverrideSet{"a", {Role::kVcpu, 1, "", {5}}}}).any);
  CHECK(ledger.find("a")->overrides == std::vector<Override>{{Role::kVcpu, 1, "", {5}}});
  CHECK(ledger.apply({Source::kApi, OverrideSet{"a", {Role::kVcpu, 1, "", {}}}}).any);
  CHECK(ledger.find("a")->overrides.empty());
}

TEST_CASE("an update that does not tell a container's name leaves it its name") {
  Ledger ledger;
  ContainerFacts facts;
  facts.id = "c1";
  facts.name = "app";
  ledger.apply({Source::kNri, ContainerSeen{"s1", facts, true}});
  facts.name.clear();
  facts.cpus = {2, 3};
  CHECK(ledger.apply({Source::kApi, ContainerSeen{"s1", facts, true}}).any);
  CHECK(ledger.find("s1")->containers.at("c1").facts.name == "app");
  CHECK_FALSE(ledger.apply({Source::kApi, ContainerSeen{"s1", facts, true}}).any);
}
