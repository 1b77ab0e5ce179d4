// SPDX-License-Identifier: Apache-2.0
// What the ledger reports that an event has changed.
#include <string>
#include <utility>
#include <vector>

#include "policy/ledger/contests.hpp"
#include "policy/ledger/ledger.hpp"
#include "tests/catch.hpp"
#include "tests/unit/policy/ledger_events.hpp"

using namespace ka::policy;
using namespace ka::policy::ledger;
using ka::tests::seen;

TEST_CASE("a change lists the CPUs that got a new owner") {
  Ledger ledger;
  CHECK(ledger.apply(seen("a", "a1", {2, 3}, true)).taken == CpuSet{2, 3});
  CHECK(ledger.apply(seen("a", "a1", {3, 4}, true)).taken == CpuSet{4});
  CHECK(ledger.apply(seen("b", "b1", {4}, true)).taken == CpuSet{4});
  CHECK(ledger.apply(seen("a", "a1", {3}, true)).taken.empty());
  CHECK(ledger.exclusive_to_others("b") == CpuSet{3});
  const Event kubelet{Source::kKubelet,
                      KubeletSeen{CpuSet{0, 1}, std::vector<Claim>{{"uid-c", "app", {6}}}}};
  CHECK(ledger.apply(kubelet).taken == CpuSet{6});
}

TEST_CASE("only a shared container that gets CPUs, and nothing else, widens only") {
  Ledger ledger;
  CHECK_FALSE(ledger.apply(seen("a", "a1", {0, 1}, false)).only_widens);
  CHECK(ledger.apply(seen("a", "a1", {0, 1, 2}, false)).only_widens);
  CHECK_FALSE(ledger.apply(seen("a", "a1", {1, 2, 3}, false)).only_widens);
  CHECK_FALSE(ledger.apply(seen("a", "a1", {1, 2, 3, 4}, true)).only_widens);
  CHECK_FALSE(ledger.apply(seen("a", "a1", {1, 2, 3, 4, 5}, true)).only_widens);
  CHECK_FALSE(ledger.apply(seen("a", "a1", {1, 2, 3, 4, 5}, false)).only_widens);
  Event with_quota = seen("a", "a1", CpuSet::range(1, 6), false);
  std::get<ContainerSeen>(with_quota.body).spec.quota = 200000;
  CHECK_FALSE(ledger.apply(with_quota).only_widens);
  ledger.apply(seen("b", "b1", {0}, false));
  CHECK_FALSE(ledger.apply(seen("b", "b1", {}, false)).only_widens);
}

TEST_CASE("a container that may own the CPUs it gets widens only: they are taken from nobody yet") {
  Ledger ledger;
  const auto may_own = [&](const std::string& pod, CpuSet cpus) {
    ContainerFacts facts;
    facts.id = pod + "1";
    facts.cpus = std::move(cpus);
    facts.quota = -1;
    return ledger.apply({Source::kNri, whole_report(pod, facts)});
  };
  may_own("a", {0});
  const Change wider = may_own("a", {0, 1});
  CHECK(wider.exclusive_map);
  CHECK_FALSE(wider.owners);
  CHECK(wider.only_widens);
  CHECK(wider.taken.empty());
  CHECK(ledger.doubted_to_others("b", CpuSet::range(0, 7)) == CpuSet{0, 1});
}

TEST_CASE(
    "a container that widens and leaves its set to another as its own is not all that changed") {
  Ledger ledger;
  const auto of_quota = [&](const std::string& pod, CpuSet cpus) {
    ContainerFacts facts;
    facts.id = pod + "1";
    facts.cpus = std::move(cpus);
    facts.quota = 200000;
    facts.period = 100000;
    return ledger.apply({Source::kNri, whole_report(pod, facts)});
  };
  of_quota("a", {0, 1});
  of_quota("b", {0, 1});
  const Change wider = of_quota("a", {0, 1, 2});
  CHECK(wider.taken == CpuSet{0, 1});
  CHECK_FALSE(wider.only_widens);
}

TEST_CASE("a pod is its highest-ranking source's, whichever reported it first") {
  Ledger ledger;
  const auto source_after = [&](Source source) {
    ledger.apply({source, PodSeen{.id = "a"}});
    return ledger.find("a")->source;
  };
  CHECK(source_after(Source::kBundle) == Source::kBundle);
  CHECK(source_after(Source::kPersist) == Source::kPersist);
  CHECK(source_after(Source::kNri) == Source::kNri);
  CHECK(source_after(Source::kPersist) == Source::kNri);
}

namespace {

Event of_name(const std::string& id, CpuSet cpus, bool begins, Source source = Source::kNri) {
  ContainerFacts facts;
  facts.id = id;
  facts.name = "app";
  facts.cpus = std::move(cpus);
  ContainerSeen seen = whole_report("a", facts, true);
  seen.begins = begins;
  return {source, std::move(seen)};
}

bool exited(const Ledger& ledger, const std::string& id) {
  return ledger.find("a")->containers.at(id).facts.exited;
}

}  // namespace

TEST_CASE("a container that kubelet made again has taken the place of the one never started") {
  Ledger ledger;
  ledger.apply(of_name("old", {1}, true));
  ledger.apply(of_name("new", {1}, true));
  CHECK(exited(ledger, "old"));
  CHECK_FALSE(exited(ledger, "new"));
  CHECK(contests_of(ledger).empty());
  // kubelet updates both.
  CHECK(ledger.apply(of_name("old", {1, 2}, false)).any);
  CHECK(ledger.apply(of_name("new", {1, 2}, false)).any);
  CHECK(exited(ledger, "old"));
  CHECK_FALSE(exited(ledger, "new"));
  CHECK_FALSE(ledger.apply(of_name("new", {1, 2}, true)).any);
}

TEST_CASE("of two containers of a name that are listed, the running one counts, in either order") {
  for (const bool old_first : {true, false}) {
    Ledger ledger;
    if (old_first) ledger.apply(of_name("old", {1}, false));
    ledger.apply(of_name("new", {1}, true));
    if (!old_first) ledger.apply(of_name("old", {1}, false));
    CHECK(exited(ledger, "old"));
    CHECK_FALSE(exited(ledger, "new"));
    CHECK(ledger.exclusive_to("a") == CpuSet{1});
  }
}

TEST_CASE("a container that is started after all has ended the one that was made beside it") {
  Ledger ledger;
  ledger.apply(of_name("one", {1}, true));
  ledger.apply(of_name("two", {1}, true));
  CHECK(ledger.apply(of_name("one", {1}, true)).any);
  CHECK_FALSE(exited(ledger, "one"));
  CHECK(exited(ledger, "two"));
}
