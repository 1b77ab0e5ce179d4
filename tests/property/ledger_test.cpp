// SPDX-License-Identifier: Apache-2.0
// The ledger on random histories, against its rules written down the slow way: all pods looked at
// after each event.
#include "policy/ledger/ledger.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/property/ledger_slow.hpp"
#include "tests/property/property.hpp"

using namespace ka::policy;
using namespace ka::policy::ledger;
using ka::tests::Slow;

namespace {

const std::vector<CpuSet> kSets = {{}, {0, 1}, {2}, {2, 3}, {4, 5}, {0, 1, 2, 3, 4, 5}};
const CpuSet kOnline = CpuSet::range(0, 7);
const std::vector<std::string> kIds = {"a", "b", "c", "d"};
const std::vector<std::string> kUids = {"", "u1", "u2"};
const std::vector<std::string> kNames = {"", "x", "y"};
const std::vector<std::string> kPods = {"ns/p", "ns/q"};

int any(int size) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, size)); }

template <typename T>
T one_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(any(static_cast<int>(values.size())))];
}

const std::vector<std::string> kClaimUids = {"c1", "c2", "c3"};

/// What the driver could have prepared: a claim's CPUs, by its uid.
PreparedClaim any_claim() { return {one_of(kClaimUids), one_of(kSets)}; }

std::vector<PreparedClaim> any_claims(int most) {
  std::map<std::string, CpuSet> claims;
  for (int i = any(most + 1); i > 0; --i) {
    const PreparedClaim claim = any_claim();
    claims[claim.uid] = claim.cpus;
  }
  std::vector<PreparedClaim> list;
  for (const auto& [uid, cpus] : claims) list.push_back({uid, cpus});
  return list;
}

/// Those of a request of all its CPUs, of little, and none that were reported.
std::int64_t any_shares(const ContainerFacts& facts) {
  return one_of<std::int64_t>({facts.cpus.size() * 1024, 2, 0});
}

Event any_container() {
  ContainerFacts facts;
  facts.id = one_of(kIds) + one_of(kNames);
  facts.name = one_of(kNames);
  facts.cpus = one_of(kSets);
  facts.period = 100000;
  facts.quota = any(2) == 0 ? -1 : facts.cpus.size() * facts.period;
  facts.shares = any_shares(facts);
  facts.exited = any(5) == 0;
  const Source source = one_of<Source>({Source::kNri, Source::kNri, Source::kApi, Source::kProxy,
                                        Source::kPersist, Source::kCgroup});
  std::optional<bool> stated;
  if (any(5) == 0) stated = any(2) == 0;
  ContainerSeen seen = whole_report(one_of(kIds), facts, stated);
  if (any(4) == 0) seen.spec.cpus.reset();
  if (any(4) == 0) seen.spec.quota.reset();
  if (any(4) == 0) seen.spec.exited.reset();
  if (any(3) == 0) seen.claims = any_claims(2);
  return {source, std::move(seen)};
}

Event any_kubelet_state() {
  KubeletSeen state;
  if (any(4) == 0) return {Source::kKubelet, state};
  state.claims.emplace();
  for (int i = any(5); i > 0; --i) {
    const bool by_id = any(4) == 0;
    state.claims->push_back(by_id ? Claim{"", one_of(kIds) + one_of(kNames), one_of(kSets)}
                                  : Claim{one_of(kUids), one_of(kNames), one_of(kSets)});
  }
  std::ranges::sort(*state.claims);
  state.outdated = any(4) == 0;
  if (any(2) == 0) state.shared_pool = one_of(kSets);
  return {Source::kKubelet, state};
}

Event any_assignments() {
  ResourcesSeen seen;
  if (any(4) != 0) seen.allocatable = CpuSet::range(any(2), 5);
  for (int i = any(4); i > 0; --i) {
    seen.assignments.push_back({one_of(kPods), one_of(kNames), one_of(kSets)});
  }
  std::ranges::sort(seen.assignments);
  return {Source::kPodResources, seen};
}

Event any_mask() {
  return {Source::kCgroup, ContainerSeen{.sandbox = one_of(kIds),
                                         .id = std::string(kSandboxMask),
                                         .spec = {.cpus = one_of(kSets)}}};
}

Event any_event() {
  switch (any(12)) {
    case 0:
      return {Source::kNri, PodGone{one_of(kIds)}};
    case 1:
      return {Source::kNri, ContainerGone{one_of(kIds), one_of(kIds) + one_of(kNames)}};
    case 2:
      return {Source::kNri, ContainerExited{one_of(kIds), one_of(kIds) + one_of(kNames)}};
    case 3:
      return any_kubelet_state();
    case 4:
      return {Source::kNri, PodSeen{.id = one_of(kIds),
                                    .pod_uid = one_of(kUids),
                                    .pod_name = any(2) == 0 ? one_of(kPods) : ""}};
    case 5:
      return any_assignments();
    case 6:
    case 7:
      return {Source::kDra, PreparedSeen{any_claims(3)}};
    case 8:
      return any_mask();
    default:
      return any_container();
  }
}

}  // namespace

TEST_CASE("the ledger's incremental changes equal those of a full comparison") {
  property::holds("who owns what, event by event", [] {
    Ledger ledger;
    KubeletSeen kubelet;
    const int events = any(40);
    for (int i = 0; i < events; ++i) {
      const Event event = any_event();
      const CpuSet before = ledger.exclusive(), doubted = ledger.doubted(kOnline);
      const Change change = ledger.apply(event);
      if (const auto* state = std::get_if<KubeletSeen>(&event.body)) kubelet = *state;
      const Slow slow{ledger, kubelet};
      for (const auto& [id, pod] : ledger.pods()) {
        for (const auto& [container_id, container] : pod.containers) {
          const Slow::Verdict verdict = slow.ownership_of(pod, container);
          RC_ASSERT(container.facts.exclusive == verdict.owns);
          RC_ASSERT(container.in_doubt == verdict.in_doubt);
        }
        RC_ASSERT(slow.divides_mask(pod));
        RC_ASSERT(ledger.doubted_to_others(id, kOnline) == slow.doubted_to_others(pod, kOnline));
        RC_ASSERT(ledger.exclusive_to_others(id) == slow.foreign_to(pod));
      }
      RC_ASSERT((ledger.exclusive() - before).subset_of(change.taken));
      RC_ASSERT(change.exclusive_map || ledger.exclusive() == before);
      RC_ASSERT(change.exclusive_map || ledger.doubted(kOnline) == doubted);
    }
  });
}

TEST_CASE("CPUs that a pod loses to another are reported") {
  property::holds("taken", [] {
    Ledger ledger;
    const int events = any(40);
    for (int i = 0; i < events; ++i) {
      std::map<std::string, CpuSet> before;
      for (const auto& [id, pod] : ledger.pods()) before[id] = ledger.exclusive_to_others(id);
      const Event event = any_event();
      const Change change = ledger.apply(event);
      for (const auto& [id, foreign] : before) {
        if (ledger.find(id) == nullptr || id == change.sandbox) continue;
        RC_ASSERT((ledger.exclusive_to_others(id) - foreign).subset_of(change.taken));
      }
    }
  });
}

namespace {

/// What is so on a node: the same whoever reports it.
struct Truth {
  struct Pod {
    std::string id, uid;
    std::vector<ContainerFacts> containers;
  };
  std::vector<Pod> pods;
  std::optional<std::vector<Claim>> claims;
};

/// kubelet >= 1.33 writes no quota for a container that has CPUs of its own.
Truth any_truth() {
  Truth truth;
  const CpuSet pool{0, 1};
  const bool has_kubelet = any(4) != 0;
  if (has_kubelet) truth.claims.emplace();
  int next = pool.size();
  for (const std::string& id : kIds) {
    Truth::Pod pod{id, "uid-" + id, {}};
    for (int i = 1 + any(2); i > 0; --i) {
      ContainerFacts facts;
      facts.id = id + std::to_string(i);
      facts.name = "name-" + facts.id;
      facts.period = 100000;
      const bool own = any(2) == 0;
      facts.cpus = own ? CpuSet::range(next, next + any(2)) : pool;
      if (own) next += facts.cpus.size();
      // A burstable container's limit may be worth the whole pool.
      const bool has_quota = !(own && has_kubelet && any(2) == 0);
      facts.quota = has_quota ? facts.cpus.size() * facts.period : -1;
      if (own && has_kubelet) truth.claims->push_back({pod.uid, facts.name, facts.cpus});
      pod.containers.push_back(facts);
    }
    truth.pods.push_back(pod);
  }
  if (truth.claims) std::ranges::sort(*truth.claims);
  return truth;
}

/// The proxy leaves out a quota that is none.
ContainerFacts as_seen_by(Source source, ContainerFacts facts) {
  if (source == Source::kProxy && facts.quota < 0) facts.quota = 0;
  return facts;
}

void report(Ledger& ledger, const Truth::Pod& pod, Source source) {
  ledger.apply({source, PodSeen{.id = pod.id, .pod_uid = pod.uid}});
  for (const ContainerFacts& facts : pod.containers) {
    ledger.apply({source, whole_report(pod.id, as_seen_by(source, facts))});
  }
}

/// All that is so, by sources and in an order that chance decides.
Ledger fold_in_random_order(const Truth& truth) {
  const std::vector<Source> sources = {Source::kNri, Source::kProxy, Source::kPersist,
                                       Source::kApi};
  Ledger ledger;
  std::vector<Truth::Pod> left = truth.pods;
  bool kubelet_reported = false;
  while (!left.empty() || !kubelet_reported) {
    ledger.set_connected(Source::kNri, any(2) == 0);
    if (any(4) == 0) {
      ledger.apply({Source::kKubelet, KubeletSeen{std::nullopt, truth.claims}});
      kubelet_reported = true;
    }
    const Truth::Pod pod = one_of(truth.pods);
    report(ledger, pod, one_of(sources));
    std::erase_if(left, [&](const Truth::Pod& other) { return other.id == pod.id; });
  }
  return ledger;
}

}  // namespace

namespace {

/// Sources that contradict each other about pods that never change.
struct Contradiction {
  std::vector<Event> events;
  CpuSet doubted;  ///< that some source says is a pod's own
};

Contradiction any_contradiction() {
  Contradiction made;
  const PreparedSeen prepared{any(2) == 0 ? any_claims(3) : std::vector<PreparedClaim>{}};
  for (const std::string& id : kIds) {
    made.events.push_back(
        {Source::kNri, PodSeen{.id = id, .pod_uid = "uid-" + id, .pod_name = "ns/" + id}});
    ContainerFacts facts;
    facts.id = id + "-app";
    facts.name = "app";
    facts.cpus = one_of(kSets);
    facts.period = 100000;
    facts.quota = any(2) == 0 ? -1 : facts.cpus.size() * facts.period;
    facts.shares = any_shares(facts);
    ContainerSeen seen = whole_report(id, facts);
    if (any(2) == 0) seen.claims = any(2) == 0 ? any_claims(2) : prepared.claims;
    made.events.push_back({Source::kNri, std::move(seen)});
  }
  made.events.push_back({Source::kDra, prepared});
  ResourcesSeen resources{any(4) == 0 ? CpuSet{} : CpuSet::range(any(2), 5), {}};
  KubeletSeen kubelet{std::nullopt, std::vector<Claim>{}, any(2) == 0};
  if (any(2) == 0) kubelet.shared_pool = one_of(kSets);
  for (const std::string& id : kIds) {
    if (any(2) == 0) resources.assignments.push_back({"ns/" + id, "app", one_of(kSets)});
    if (any(2) == 0) kubelet.claims->push_back({"uid-" + id, "app", one_of(kSets)});
  }
  for (const Claim& claim : *kubelet.claims) made.doubted |= claim.cpus;
  if (any(3) == 0) kubelet.claims.reset();
  made.events.push_back({Source::kPodResources, resources});
  made.events.push_back({Source::kKubelet, kubelet});
  if (!kubelet.claims) made.doubted = {};
  for (const PreparedClaim& claim : prepared.claims) made.doubted |= claim.cpus;
  const bool resources_decide = !kubelet.claims || kubelet.outdated;
  if (resources_decide && !resources.allocatable.empty()) {
    for (const Assignment& one : resources.assignments) made.doubted |= one.cpus;
  }
  return made;
}

/// Whoever may own CPUs has them until that is decided: they are withheld from all others.
void check_doubts(const Ledger& ledger) {
  const Slow slow{ledger, ledger.kubelet()};
  for (const auto& [id, pod] : ledger.pods()) {
    for (const auto& [container_id, container] : pod.containers) {
      if (!slow.withholds(pod, container) || slow.has_all(pod, kOnline)) continue;
      for (const std::string& other : kIds) {
        const CpuSet kept = ledger.exclusive_to_others(other) | ledger.exclusive_to(other) |
                            ledger.doubted_to_others(other, kOnline);
        RC_ASSERT(other == id || container.facts.cpus.subset_of(kept));
      }
    }
  }
}

Ledger folded(const std::vector<Event>& events) {
  Ledger ledger;
  for (const Event& event : events) ledger.apply(event);
  return ledger;
}

}  // namespace

TEST_CASE("contradicting sources give the same owners in any order") {
  property::holds("contradictions", [] {
    Contradiction made = any_contradiction();
    const Ledger first = folded(made.events);
    for (std::size_t i = made.events.size(); i > 1; --i) {
      std::swap(made.events[i - 1],
                made.events[static_cast<std::size_t>(any(static_cast<int>(i)))]);
    }
    const Ledger second = folded(made.events);
    RC_ASSERT(first.exclusive() == second.exclusive());
    RC_ASSERT(first.contested() == second.contested());
    for (const auto& [id, pod] : first.pods()) {
      RC_ASSERT(first.exclusive_to_others(id) == second.exclusive_to_others(id));
      RC_ASSERT(pod.exclusive_cpus() == second.find(id)->exclusive_cpus());
      RC_ASSERT(first.doubted_to_others(id, kOnline) == second.doubted_to_others(id, kOnline));
    }
    check_doubts(first);
    // What a source that counts gives to a pod is nobody's shared CPU.
    RC_ASSERT(!first.shared_pool(CpuSet::range(0, 7)).intersects(made.doubted));
  });
}

TEST_CASE("the same facts give the same owners from any mix of sources, in any order") {
  property::holds("any mix of sources", [] {
    const Truth truth = any_truth();
    Ledger by_nri;
    by_nri.apply({Source::kKubelet, KubeletSeen{std::nullopt, truth.claims}});
    for (const Truth::Pod& pod : truth.pods) report(by_nri, pod, Source::kNri);
    const Ledger mixed = fold_in_random_order(truth);
    RC_ASSERT(mixed.exclusive() == by_nri.exclusive());
    for (const auto& [id, pod] : by_nri.pods()) {
      RC_ASSERT(mixed.exclusive_to_others(id) == by_nri.exclusive_to_others(id));
      for (const auto& [container_id, container] : pod.containers) {
        const bool same = mixed.find(id)->containers.at(container_id).facts.exclusive ==
                          container.facts.exclusive;
        RC_ASSERT(same);
      }
    }
  });
}

namespace {

ContainerSpec any_spec() {
  ContainerSpec spec;
  spec.name = one_of(kNames);
  if (any(2) == 0) spec.cpus = one_of(kSets);
  if (any(2) == 0) spec.mems = NodeSet{any(3)};
  if (any(2) == 0) spec.quota = any(3) * 100000;
  if (any(2) == 0) spec.period = 100000 + any(2);
  if (any(3) == 0) spec.exited = any(2) == 0;
  return spec;
}

/// The last value that any of the reports has, or else what was so without them.
template <typename T>
T last_of(const std::vector<ContainerSpec>& specs, std::optional<T> ContainerSpec::* field,
          T otherwise) {
  for (const ContainerSpec& spec : specs) otherwise = (spec.*field).value_or(otherwise);
  return otherwise;
}

}  // namespace

TEST_CASE("each value of a container is the last one reported; an omitted value is kept") {
  property::holds("reports that leave things out", [] {
    Ledger ledger;
    std::vector<ContainerSpec> specs{any_spec()};  // what it had before the first report
    const ContainerSpec before = specs.front();
    for (int i = 1 + any(8); i > 0; --i) {
      ContainerSeen seen{.sandbox = "a", .id = "c", .spec = any_spec()};
      seen.before = specs.size() == 1 ? before : any_spec();
      specs.push_back(seen.spec);
      ledger.apply({one_of<Source>({Source::kNri, Source::kApi, Source::kPersist}), seen});
    }
    const ContainerFacts& facts = ledger.find("a")->containers.at("c").facts;
    RC_ASSERT(facts.cpus == last_of(specs, &ContainerSpec::cpus, CpuSet{}));
    RC_ASSERT(facts.mems == last_of(specs, &ContainerSpec::mems, NodeSet{}));
    RC_ASSERT(facts.quota == last_of(specs, &ContainerSpec::quota, std::int64_t{0}));
    RC_ASSERT(facts.period == last_of(specs, &ContainerSpec::period, std::int64_t{0}));
    RC_ASSERT(facts.exited == last_of(specs, &ContainerSpec::exited, false));
    std::string name;
    for (const ContainerSpec& spec : specs) name = spec.name.empty() ? name : spec.name;
    RC_ASSERT(facts.name == name);
  });
}
