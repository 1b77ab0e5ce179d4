// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/memory.hpp"

#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

namespace {

constexpr std::uint64_t kPage = 4096, kMib = 1 << 20, kGib = 1 << 30;

/// Four nodes in a row: each is 10 further from the next one.
Topology row_of_nodes() {
  std::vector<Cpu> cpus;
  for (int i = 0; i < 4; ++i)
    cpus.push_back({.cpu = i, .core = i, .socket = i, .numa = i, .l3 = i});
  return *Topology::make(std::move(cpus),
                         {{10, 20, 30, 40}, {20, 10, 20, 30}, {30, 20, 10, 20}, {40, 30, 20, 10}});
}

NodeSet nodes(const std::string& list) { return *parse_list<NodeTag>(list); }

MemoryFacts small_pages(NodeBytes placed, NodeBytes free) {
  return {.parts = {{kPage, std::move(placed), std::move(free)}},
          .bound = {},
          .allowed = nodes("0-3"),
          .device = {}};
}

}  // namespace

TEST_CASE("memory on other nodes goes to the node of the CPUs") {
  const auto plan =
      plan_memory(row_of_nodes(), nodes("0"), small_pages({{0, kGib}, {3, kGib}}, {{0, 4 * kGib}}));
  CHECK(plan.verdict == MemoryVerdict::kMove);
  CHECK(plan.misplaced == kGib);
  CHECK(plan.moves == std::vector<MemoryMove>{{kPage, 3, 0, kGib}});
}

TEST_CASE("memory that is in place, or nearly so, stays") {
  const auto plan = plan_memory(row_of_nodes(), nodes("0-1"),
                                small_pages({{0, kGib}, {1, kGib}, {3, 20 * kMib}}, {{0, kGib}}));
  CHECK(plan.verdict == MemoryVerdict::kInPlace);
  CHECK(plan.misplaced == 20 * kMib);
  CHECK(plan.moves.empty());
}

TEST_CASE("memory without room goes to the next nearest node, if that is nearer at all") {
  const auto facts = small_pages({{3, kGib}}, {{0, 256 * kMib}, {1, 0}, {2, 4 * kGib}});
  const auto plan = plan_memory(row_of_nodes(), nodes("0"), facts);
  const std::uint64_t first = 256 * kMib / 8 * 7;
  CHECK(plan.moves == std::vector<MemoryMove>{{kPage, 3, 0, first}, {kPage, 3, 2, kGib - first}});

  const auto near = plan_memory(row_of_nodes(), nodes("0"),
                                small_pages({{1, kGib}}, {{0, 0}, {2, kGib}, {3, kGib}}));
  CHECK(near.verdict == MemoryVerdict::kNoRoom);
  CHECK(near.moves.empty());
}

TEST_CASE("the nearest of several target nodes is taken, equally near ones share evenly") {
  const auto nearest = plan_memory(row_of_nodes(), nodes("0-1"),
                                   small_pages({{3, kGib}}, {{0, 4 * kGib}, {1, 4 * kGib}}));
  CHECK(nearest.moves == std::vector<MemoryMove>{{kPage, 3, 1, kGib}});

  const auto alike = plan_memory(row_of_nodes(), nodes("0,2"),
                                 small_pages({{1, kGib}}, {{0, 4 * kGib}, {2, 4 * kGib}}));
  CHECK(alike.moves == std::vector<MemoryMove>{{kPage, 1, 0, kGib / 2}, {kPage, 1, 2, kGib / 2}});

  const auto one_full = plan_memory(row_of_nodes(), nodes("0,2"),
                                    small_pages({{1, kGib}}, {{0, 4 * kGib}, {2, 8 * kPage}}));
  CHECK(one_full.moves ==
        std::vector<MemoryMove>{{kPage, 1, 2, 7 * kPage}, {kPage, 1, 0, kGib - 7 * kPage}});
}

TEST_CASE("huge pages go to nodes with free huge pages, all of them") {
  constexpr std::uint64_t kHuge = 2 * kMib;
  MemoryFacts facts = small_pages({{0, kMib}}, {{0, kGib}});
  facts.parts.push_back({kHuge, {{1, 64 * kHuge}}, {{0, 16 * kHuge}}});
  const auto plan = plan_memory(row_of_nodes(), nodes("0"), facts);
  CHECK(plan.moves == std::vector<MemoryMove>{{kHuge, 1, 0, 16 * kHuge}});
  CHECK(plan.misplaced == 64 * kHuge);
}

TEST_CASE("memory is left alone, with the reason") {
  const auto machine = row_of_nodes();
  MemoryFacts facts = small_pages({{3, kGib}}, {{0, 4 * kGib}});
  CHECK(plan_memory(machine, {}, facts).verdict == MemoryVerdict::kAnywhere);

  facts.allowed = nodes("2-3");
  CHECK(plan_memory(machine, nodes("0"), facts).verdict == MemoryVerdict::kNoNode);

  facts.device = "/dev/vfio/12";
  const auto pinned = plan_memory(machine, nodes("0"), facts);
  CHECK(pinned.verdict == MemoryVerdict::kDevice);
  CHECK(pinned.misplaced == kGib);
  CHECK(pinned.moves.empty());
}

TEST_CASE("a node gets only as much as the cgroup allows there") {
  MemoryFacts facts = small_pages({{3, kGib}}, {{0, 4 * kGib}, {1, 4 * kGib}});
  facts.allowed = nodes("1,3");
  const auto plan = plan_memory(row_of_nodes(), nodes("0-1"), facts);
  CHECK(plan.moves == std::vector<MemoryMove>{{kPage, 3, 1, kGib}});
}
