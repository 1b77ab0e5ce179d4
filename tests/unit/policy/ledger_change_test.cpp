// SPDX-License-Identifier: Apache-2.0
// What the ledger reports that an event has changed.
#include <vector>

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
