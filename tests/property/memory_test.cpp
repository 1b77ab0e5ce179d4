// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/memory.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/property/property.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

namespace {

constexpr std::uint64_t kPages[] = {4096, 2 << 20, 1 << 30};

int below(int end) { return *rc::gen::inRange(0, end); }

/// Distances need not be alike in both directions.
Topology any_machine(int nodes) {
  std::vector<Cpu> cpus;
  std::vector<std::vector<int>> distances;
  for (int i = 0; i < nodes; ++i) {
    cpus.push_back({.cpu = i, .core = i, .socket = i, .numa = i, .l3 = i});
    std::vector<int>& row = distances.emplace_back();
    for (int j = 0; j < nodes; ++j) row.push_back(i == j ? 10 : 11 + below(4) * 10);
  }
  return *Topology::make(std::move(cpus), std::move(distances));
}

NodeBytes any_bytes(int nodes, std::uint64_t page) {
  NodeBytes bytes;
  for (int i = 0; i < nodes; ++i) {
    if (below(3) > 0) bytes[i] = static_cast<std::uint64_t>(below(1000)) * page;
  }
  return bytes;
}

NodeSet any_nodes(int nodes) {
  NodeSet set;
  for (int i = 0; i < nodes; ++i) {
    if (below(2) > 0) set.add(i);
  }
  return set;
}

MemoryFacts any_facts(int nodes) {
  MemoryFacts facts;
  for (const std::uint64_t page : kPages) {
    facts.parts.push_back({page, any_bytes(nodes, page), any_bytes(nodes, page)});
  }
  facts.allowed = any_nodes(nodes);
  return facts;
}

int distance_to(const Topology& machine, const NodeSet& nodes, int node) {
  int nearest = std::numeric_limits<int>::max();
  for (const int from : nodes) nearest = std::min(nearest, machine.distance(from, node));
  return nearest;
}

using Flow = std::map<std::pair<std::uint64_t, int>, std::uint64_t>;  ///< by page size and node

}  // namespace

TEST_CASE("memory moves only nearer, only where allowed, and only where there is room") {
  property::holds("moves are sound", [] {
    const int nodes = 1 + below(8);
    const Topology machine = any_machine(nodes);
    const NodeSet mems = any_nodes(nodes);
    const MemoryFacts facts = any_facts(nodes);
    const MemoryPlan plan = plan_memory(machine, mems, facts);
    RC_ASSERT(plan == plan_memory(machine, mems, facts));
    RC_ASSERT(plan.moves.empty() == (plan.verdict != MemoryVerdict::kMove));
    Flow out, in;
    for (const MemoryMove& move : plan.moves) {
      RC_ASSERT(move.bytes > 0 && move.bytes % move.page == 0);
      RC_ASSERT(!mems.contains(move.from));
      RC_ASSERT(facts.allowed.contains(move.to));
      const bool nearer =
          distance_to(machine, mems, move.to) < distance_to(machine, mems, move.from);
      RC_ASSERT(mems.contains(move.to) || nearer);
      out[{move.page, move.from}] += move.bytes;
      in[{move.page, move.to}] += move.bytes;
    }
    for (const MemoryPart& part : facts.parts) {
      for (int node = 0; node < nodes; ++node) {
        const auto of = [&](const NodeBytes& bytes) {
          return bytes.contains(node) ? bytes.at(node) : 0;
        };
        RC_ASSERT((out[{part.page, node}]) <= of(part.placed));
        RC_ASSERT((in[{part.page, node}]) <= of(part.free));
      }
    }
  });
}

TEST_CASE("with room on every target node, all memory arrives") {
  property::holds("nothing is left", [] {
    const int nodes = 2 + below(7);
    const Topology machine = any_machine(nodes);
    NodeSet mems = any_nodes(nodes);
    mems.add(below(nodes));
    MemoryFacts facts = any_facts(nodes);
    facts.allowed = machine.nodes();
    for (MemoryPart& part : facts.parts) {
      for (const int node : mems) part.free[node] = 20000 * part.page;
    }
    const MemoryPlan plan = plan_memory(machine, mems, facts);
    std::uint64_t moved = 0;
    for (const MemoryMove& move : plan.moves) {
      RC_ASSERT(mems.contains(move.to));
      moved += move.bytes;
    }
    RC_ASSERT(moved == plan.misplaced || plan.verdict == MemoryVerdict::kInPlace);
  });
}
