// SPDX-License-Identifier: Apache-2.0
// Random histories of pods: no CPU has two owners, none is lost when all pods are gone, and books
// that were closed and opened again say and do the same.
#include "policy/allocate/holdings.hpp"
#include "tests/catch.hpp"
#include "tests/property/allocate/random.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;
using ka::test::Random;

namespace {

struct Node {
  const Machine& machine;
  CpuSet reserved;
  OptionSet options;
  Pipeline policy;
  Alignment alignment;

  Holdings books() const { return Holdings(machine, reserved, options, policy, alignment); }
};

Node random_node(Random& random, const Machine& machine) {
  Node node{machine, random.part_of(machine.cpus(), 10), {}, packed_policy(), {}};
  if (random.chance(20)) node.options.add(CpuOption::kStrictCpuReservation);
  if (random.chance(20)) node.options.add(CpuOption::kFullPcpusOnly);
  if (random.chance(30)) node.policy = fitted_policy();
  node.alignment.policy =
      random.one_of<HintPolicy>({HintPolicy::kNone, HintPolicy::kBestEffort,
                                 HintPolicy::kRestricted, HintPolicy::kSingleNumaNode});
  node.alignment.pod_scope = random.chance(50);
  return node;
}

std::vector<PodContainer> random_pod(Random& random, const Machine& machine) {
  std::vector<PodContainer> pod;
  const int containers = random.between(1, 5);
  for (int i = 0; i < containers; ++i) {
    PodContainer container{.name = std::to_string(i), .part = PodPart::kApp, .request = {}};
    container.part = random.one_of<PodPart>({PodPart::kInit, PodPart::kSidecar, PodPart::kApp});
    container.request.use = random.chance(80) ? CpuUse::kExclusive : CpuUse::kShare;
    container.request.cpus = random.between(1, std::max(2, machine.cpus().size() / 6));
    pod.push_back(std::move(container));
  }
  return pod;
}

/// Init containers may overlap with others of their pod, and with nobody else.
void check_owners(const Holdings& books, const CpuSet& reserved) {
  std::map<std::string, CpuSet> of_pod;
  CpuSet running;
  for (const auto& [id, holding] : books.all()) {
    if (holding.request.use != CpuUse::kExclusive) continue;
    CHECK(holding.cpus.size() == holding.request.cpus);
    CHECK_FALSE(holding.cpus.intersects(reserved));
    of_pod[holding.pod] |= holding.cpus;
    if (holding.part == PodPart::kInit) continue;
    CHECK_FALSE(holding.cpus.intersects(running));
    running |= holding.cpus;
  }
  CpuSet all;
  for (const auto& [pod, cpus] : of_pod) {
    CHECK_FALSE(cpus.intersects(all));
    all |= cpus;
  }
  CHECK(all == books.exclusive());
}

/// After end_inits() a pod has what its running containers have, and nothing else.
void check_no_leak(const Holdings& books, const std::string& pod) {
  for (const auto& [id, holding] : books.all()) {
    CHECK_FALSE((holding.pod == pod && holding.part == PodPart::kInit));
  }
}

Holdings reopened(const Node& node, const Holdings& books) {
  Holdings again = node.books();
  CHECK_FALSE(again.restore(books.all()).has_value());
  CHECK(again.all() == books.all());
  CHECK(again.exclusive() == books.exclusive());
  CHECK(again.shared_pool() == books.shared_pool());
  return again;
}

/// The same step in books that were reopened before it.
void step(Random& random, const Node& node, Holdings& books) {
  Holdings again = reopened(node, books);
  const std::string pod(1, static_cast<char>('a' + random.below(5)));
  const int what = random.below(10);
  const auto containers = random_pod(random, node.machine);
  const int cpus = random.between(1, node.machine.cpus().size() / 3 + 1);
  for (Holdings* each : {&books, &again}) {
    if (what < 5) static_cast<void>(each->add_pod(pod, containers));
    if (what >= 3 && what < 7) static_cast<void>(each->end_inits(pod));
    if (what == 7) static_cast<void>(each->resize(pod + "/0", cpus));
    if (what > 7) static_cast<void>(each->remove_pod(pod));
  }
  CHECK(again.all() == books.all());
  check_owners(books, node.reserved);
  if (what >= 3 && what < 7) check_no_leak(books, pod);
}

}  // namespace

TEST_CASE("pods come, start, are resized and go, and the holdings stay consistent") {
  const unsigned seed = ka::test::first_seed() + 50000;
  for (unsigned i = 0; i < 200; ++i) {
    Random random(seed + i);
    INFO("seed " << seed + i);
    const Machine machine = ka::test::random_machine(random);
    const Node node = random_node(random, machine);
    Holdings books = node.books();
    const CpuSet pool = books.shared_pool();
    for (int j = 0; j < 15; ++j) step(random, node, books);
    for (const char* pod : {"a", "b", "c", "d", "e"}) static_cast<void>(books.remove_pod(pod));
    CHECK(books.all().empty());
    CHECK(books.shared_pool() == pool);
  }
}

TEST_CASE("a pod that does not fit as a whole leaves nothing behind") {
  const Machine machine = ka::test::grid_machine({.cores_per_node = 4});
  Holdings books(machine, {0}, {});
  const auto own = [](const char* name, PodPart part, int cpus) {
    return PodContainer{name, part, {.use = CpuUse::kExclusive, .cpus = cpus}};
  };
  const PodContainer pod[] = {own("i", PodPart::kInit, 6), own("s", PodPart::kSidecar, 2),
                              own("a", PodPart::kApp, 4)};
  REQUIRE(books.add_pod("fits", pod));
  CHECK(books.exclusive().size() == 6);
  CHECK_FALSE(books.add_pod("fits", pod));
  CHECK_FALSE(
      books.add_pod("not", std::vector{own("a", PodPart::kApp, 1), own("b", PodPart::kApp, 1)}));
  CHECK(books.all().size() == 3);
  REQUIRE(books.end_inits("fits"));
  CHECK(books.exclusive().size() == 6);
  REQUIRE(books.add_pod("small", std::vector{own("i", PodPart::kInit, 1)}));
  CHECK(books.shared_pool() == CpuSet{0});
  REQUIRE(books.end_inits("small"));
  CHECK(books.shared_pool().size() == 2);
}

TEST_CASE("holdings with two owners of a CPU are rejected") {
  const Machine machine = ka::test::grid_machine({.cores_per_node = 4});
  Holdings books(machine, {0}, {});
  Holding one{.request = {.use = CpuUse::kExclusive, .cpus = 1},
              .cpus = {1},
              .promised = {1},
              .pod = "p",
              .part = PodPart::kInit};
  Holding other = one;
  other.part = PodPart::kApp;
  CHECK_FALSE(books.restore({{"p/a", other}, {"p/i", one}}).has_value());
  other.pod = "q";
  CHECK(books.restore({{"p/i", one}, {"q/a", other}}) == "p/i and q/a hold the same CPU");
  one.cpus = {0};
  CHECK(books.restore({{"p/i", one}}) == "p/i: holds a reserved CPU");
  one.cpus = {8};
  CHECK(books.restore({{"p/i", one}}) == "p/i: holds an unknown CPU");
}
