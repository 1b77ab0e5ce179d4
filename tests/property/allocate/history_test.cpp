// SPDX-License-Identifier: Apache-2.0
// 10,000 random histories of a node: containers come, go, are resized and change class. After each
// step the books must be in order, and a refused step must have changed nothing.
#include "tests/catch.hpp"
#include "tests/property/allocate/random.hpp"

#include "policy/allocate/holdings.hpp"

using ka::Expected;
using namespace ka::policy;
using namespace ka::policy::allocate;
using ka::test::Random;

namespace {

struct Node {
  const Machine& machine;
  CpuSet reserved;
  OptionSet options;
  Holdings books;
};

HoldingRequest random_request(Random& random, const Machine& machine) {
  HoldingRequest request{.use = random.one_of<CpuUse>({CpuUse::kExclusive, CpuUse::kExclusive,
                                                       CpuUse::kShare, CpuUse::kNone}),
                         .cpus = random.between(0, std::max(2, machine.cpus().size() / 3))};
  if (request.use == CpuUse::kNone) request.cpus = 0;
  request.prefer_isolated = random.chance(10);
  if (random.chance(20)) request.numa_affinity = NodeSet{machine.topology().nodes().first()};
  return request;
}

void check_exclusive(const Node& node) {
  CpuSet seen;
  for (const auto& [id, holding] : node.books.all()) {
    if (holding.request.use != CpuUse::kExclusive) continue;
    CHECK(holding.cpus.size() == holding.request.cpus);
    if (node.options.has(CpuOption::kFullPcpusOnly)) CHECK(node.machine.whole_cores(holding.cpus));
    CHECK_FALSE(holding.cpus.intersects(seen));
    seen |= holding.cpus;
  }
  CHECK(seen == node.books.exclusive());
  CHECK_FALSE(seen.intersects(node.reserved));
}

void check_pool(const Node& node) {
  CpuSet pool = node.machine.cpus() - node.books.exclusive();
  if (node.options.has(CpuOption::kStrictCpuReservation)) pool -= node.reserved;
  CHECK(node.books.shared_pool() == pool);
  for (const auto& [id, holding] : node.books.all()) {
    if (holding.request.use == CpuUse::kExclusive) continue;
    CHECK(node.books.cpus_of(id).subset_of(pool));
    CHECK_FALSE(pool.empty());
  }
}

void check_promises(const Node& node) {
  for (const auto& [id, holding] : node.books.all()) {
    CHECK(holding.promised.subset_of(holding.cpus));
  }
}

void check_resized(const Holding& before, const Holding& after, bool whole) {
  const bool grew = after.request.cpus >= before.cpus.size();
  CHECK((grew ? before.cpus.subset_of(after.cpus) : after.cpus.subset_of(before.cpus)));
  if (whole) return;
  const bool room = after.request.cpus >= before.promised.size();
  CHECK((room ? before.promised.subset_of(after.cpus) : after.cpus.subset_of(before.promised)));
}

/// Every container whose CPUs changed is named, and no other.
void check_moved(const Holdings& before, const Holdings& after, const Moved& moved) {
  for (const auto& [id, holding] : after.all()) {
    const bool named = std::ranges::binary_search(moved, id);
    if (before.cpus_of(id) != after.cpus_of(id)) CHECK(named);
  }
}

Expected<Moved, Refusal> step(Random& random, Node& node, const std::string& id) {
  if (!node.books.all().contains(id)) {
    return node.books.add(id, random_request(random, node.machine));
  }
  const int what = random.below(10);
  if (what < 3) return node.books.remove(id);
  if (what < 6) return node.books.change(id, random_request(random, node.machine));
  const Holding before = node.books.all().at(id);
  auto moved = node.books.resize(id, random.between(0, node.machine.cpus().size() / 2));
  const bool exclusive = before.request.use == CpuUse::kExclusive;
  if (moved && exclusive)
    check_resized(before, node.books.all().at(id), node.options.has(CpuOption::kFullPcpusOnly));
  return moved;
}

void check_history(Random& random, Node& node) {
  for (int i = 0; i < 12; ++i) {
    const Holdings before = node.books;
    const auto moved = step(random, node, std::string(1, static_cast<char>('a' + random.below(6))));
    if (moved) {
      check_moved(before, node.books, *moved);
    } else {
      CHECK(node.books.all() == before.all());
      CHECK(node.books.exclusive() == before.exclusive());
    }
    check_exclusive(node);
    check_pool(node);
    check_promises(node);
  }
}

}  // namespace

TEST_CASE("10,000 random histories keep the holdings consistent") {
  const unsigned seed = ka::test::first_seed();
  for (unsigned i = 0; i < 100; ++i) {
    Random random(seed + i);
    const Machine machine = ka::test::random_machine(random);
    for (int j = 0; j < 100; ++j) {
      OptionSet options;
      if (random.chance(30)) options.add(CpuOption::kDistributeAcrossNuma);
      if (random.chance(20)) options.add(CpuOption::kStrictCpuReservation);
      if (random.chance(20)) options.add(CpuOption::kFullPcpusOnly);
      const CpuSet reserved = random.part_of(machine.cpus(), 10);
      Node node{machine, reserved, options, Holdings(machine, reserved, options)};
      INFO("seed " << seed + i << ", history " << j);
      check_history(random, node);
    }
  }
}
