// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/hints.hpp"

#include <array>

#include "policy/allocate/cpu_hints.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"

using ka::Expected;
using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

Hint preferred(NodeSet nodes) { return {std::move(nodes), true}; }
Hint possible(NodeSet nodes) { return {std::move(nodes), false}; }

ProviderHints says(const std::string& resource, std::vector<Hint> hints) {
  return {{resource, std::move(hints)}};
}

std::string text(const Expected<MergedHint, std::string>& merged) {
  if (!merged) return merged.error();
  return (merged->affinity ? format_list(*merged->affinity) : "any") +
         (merged->preferred ? " preferred" : "") + (merged->admit ? " admitted" : "");
}

std::string text(const std::vector<Hint>& hints) {
  std::string all;
  for (const Hint& hint : hints) {
    all += format_list(*hint.affinity) + (hint.preferred ? "! " : " ");
  }
  return all;
}

}  // namespace

TEST_CASE("admission depends on the topology manager policy") {
  HintProblem problem{.nodes = {0, 1},
                      .providers = {says("cpu", {preferred({0})}), says("gpu", {preferred({1})})}};
  CHECK(text(merge_hints(problem)) == "0-1 admitted");
  problem.policy = HintPolicy::kRestricted;
  CHECK(text(merge_hints(problem)) == "0-1");
  problem.policy = HintPolicy::kSingleNumaNode;
  CHECK(text(merge_hints(problem)) == "any");
  problem.policy = HintPolicy::kNone;
  CHECK(text(merge_hints(problem)) == "any admitted");
}

TEST_CASE("prefer-closest-numa-nodes selects the closest of equally wide sets") {
  HintProblem problem{
      .nodes = {0, 1, 2},
      .providers = {says("cpu", {preferred({0, 1}), preferred({0, 2}), preferred({1, 2})})},
      .distances = {{10, 30, 20}, {30, 10, 15}, {20, 15, 10}}};
  CHECK(text(merge_hints(problem)) == "0-1 preferred admitted");
  problem.prefer_closest = true;
  CHECK(text(merge_hints(problem)) == "1-2 preferred admitted");
  problem.policy = HintPolicy::kSingleNumaNode;
  CHECK(text(merge_hints(problem)) == "any");
  problem.distances.pop_back();
  CHECK(text(merge_hints(problem)) ==
        "prefer-closest-numa-nodes needs distances with a row and a column for each node");
}

TEST_CASE("distances are indexed by node order, not by node id") {
  HintProblem problem{.nodes = {3, 8, 40},
                      .providers = {says("cpu", {preferred({3, 8}), preferred({8, 40})})},
                      .prefer_closest = true,
                      .distances = {{10, 30, 20}, {30, 10, 15}, {20, 15, 10}}};
  CHECK(text(merge_hints(problem)) == "8,40 preferred admitted");
}

TEST_CASE("prefer-cpu-alignment keeps CPUs on one node away from the device") {
  // kubernetes#106270: node 0 has the only network card, and no CPUs left.
  HintProblem problem{.nodes = {0, 1},
                      .providers = {says("cpu", {preferred({1}), possible({0, 1})}),
                                    says("nic", {preferred({0}), possible({0, 1})})}};
  CHECK(text(merge_hints(problem)) == "0 admitted");
  problem.prefer_cpu_alignment = true;
  CHECK(text(merge_hints(problem)) == "1 admitted");

  SECTION("also without a common node") {
    problem.providers.back() = says("nic", {preferred({0})});
    CHECK(text(merge_hints(problem)) == "1 admitted");
  }
  SECTION("also with the device on all nodes") {
    problem.providers = {says("cpu", {preferred({0}), preferred({1}), possible({0, 1})}),
                         says("gpu", {preferred({0, 1})})};
    CHECK(text(merge_hints(problem)) == "0 admitted");
    problem.prefer_cpu_alignment = false;
    CHECK(text(merge_hints(problem)) == "0-1 admitted");
  }
  SECTION("not for other policies") {
    problem.policy = HintPolicy::kRestricted;
    CHECK(text(merge_hints(problem)) == "0");
  }
  SECTION("not without preferred CPU hints") {
    problem.providers.front() = says("cpu", {});
    CHECK(text(merge_hints(problem)) == "0 admitted");
  }
}

TEST_CASE("no NUMA nodes, or more than the limit, are rejected") {
  HintProblem problem{.nodes = NodeSet::range(0, 8), .max_nodes = 8};
  CHECK(text(merge_hints(problem)) == "unsupported on machines with more than 8 NUMA Nodes");
  problem.max_nodes = 9;
  CHECK(text(merge_hints(problem)) == "0-8 preferred admitted");
  problem.nodes = NodeSet::range(0, 64);
  problem.max_nodes = {};
  CHECK(text(merge_hints(problem)) == "65 NUMA nodes are more than 64");
  problem.nodes = {};
  CHECK(text(merge_hints(problem)) == "there are no NUMA nodes");
}

TEST_CASE("node ids may be sparse") {
  HintProblem problem{.nodes = {3, 77, 8000}};
  problem.providers = {says("cpu", {preferred({77}), preferred({8000})}),
                       says("memory", {preferred({77, 8000}), preferred({8000})})};
  CHECK(text(merge_hints(problem)) == "8000 preferred admitted");
  problem.providers.push_back(says("gpu", {preferred({3})}));
  CHECK(text(merge_hints(problem)) == "3,77,8000 admitted");
  problem.policy = HintPolicy::kSingleNumaNode;
  problem.providers.pop_back();
  CHECK(text(merge_hints(problem)) == "8000 preferred admitted");
}

TEST_CASE("a hint without nodes is the narrowest, as in kubelet") {
  const HintProblem problem{.nodes = {0, 1, 2},
                            .providers = {says("cpu", {possible(NodeSet{}), possible({0, 1, 2})}),
                                          says("memory", {possible({0, 1}), possible({2})})}};
  CHECK(text(merge_hints(problem)) == "2 admitted");
}

TEST_CASE("hints on 64 nodes are merged") {
  std::vector<Hint> pairs, runs;
  for (int node = 0; node < 63; ++node) pairs.push_back(possible({node, node + 1}));
  for (int node = 0; node < 60; ++node) runs.push_back(possible(NodeSet::range(node, node + 4)));
  HintProblem problem{.nodes = NodeSet::range(0, 63),
                      .providers = {says("cpu", pairs), says("memory", runs), says("gpu", runs)}};
  problem.providers.push_back(says("nic", {possible(NodeSet::range(40, 45))}));
  CHECK(text(merge_hints(problem)) == "40-41 admitted");
  problem.policy = HintPolicy::kSingleNumaNode;
  CHECK(text(merge_hints(problem)) == "any");
}

TEST_CASE("hints on 64 nodes beyond the limit of intersections are merged") {
  std::vector<Hint> hints;
  std::uint64_t state = 1;
  for (int i = 0; i < 200; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    hints.push_back(possible(NodeSet::from_words(std::array{state | state >> 21 | 1})));
  }
  const HintProblem problem{.nodes = NodeSet::range(0, 63),
                            .providers = {says("cpu", hints), says("gpu", hints),
                                          says("nic", hints), says("memory", hints)}};
  const auto merged = merge_hints(problem);
  REQUIRE(merged);
  CHECK(merged->affinity->size() > 0);
  CHECK_FALSE(merged->preferred);
}

TEST_CASE("a narrow hint that all have is found behind more intersections than are kept") {
  constexpr int kAlone = 63;
  std::uint64_t state = 1;
  const auto wide = [&state] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t bits = (state | state >> 21) & ~(std::uint64_t{1} << kAlone);
    return possible(NodeSet::from_words(std::array{bits}));
  };
  const auto hints = [&wide] {
    std::vector<Hint> all;
    for (int i = 0; i < 60; ++i) all.push_back(wide());
    all.push_back(possible(NodeSet{kAlone}));
    return all;
  };
  const HintProblem problem{
      .nodes = NodeSet::range(0, 63),
      .providers = {says("cpu", hints()), says("gpu", hints()), says("memory", hints())}};
  CHECK(text(merge_hints(problem)) == "63 admitted");
}

TEST_CASE("CPU hints: smallest sets first, preferred if as small as on an empty machine") {
  const Machine machine =
      ka::test::grid_machine({.sockets = 2, .nodes_per_socket = 2, .cores_per_node = 1});
  const CpuSet available = machine.cpus() - CpuSet{0};
  CHECK(text(cpu_hints(machine, {.available = available, .cpus = 2})) ==
        "1! 2! 3! 0-1 0,2 0,3 1-2 1,3 2-3 0-2 0-1,3 0,2-3 1-3 0-3 ");
  CHECK(text(cpu_hints(machine, {.available = available, .cpus = 7})) == "0-3! ");
  CHECK(text(cpu_hints(machine, {.available = available, .cpus = 8})) == "");
}

TEST_CASE("CPU hints include reusable CPUs, and count sockets with align-by-socket") {
  const Machine machine =
      ka::test::grid_machine({.sockets = 2, .nodes_per_socket = 2, .cores_per_node = 1});
  const CpuSet reusable{3};
  CHECK(text(cpu_hints(
            machine, {.available = machine.cpus() - reusable, .reusable = reusable, .cpus = 4})) ==
        "0,3! 1,3! 2-3! 0-1,3 0,2-3 1-3 0-3 ");
  CHECK(text(cpu_hints(
            machine,
            {.available = machine.cpus(), .cpus = 3, .options = {CpuOption::kAlignBySocket}})) ==
        "0-1! 0,2! 0,3! 1-2! 1,3! 2-3! 0-2 0-1,3 0,2-3 1-3 0-3 ");
}

TEST_CASE("CPU hints of many nodes extend each node by its nearest") {
  const Machine machine = ka::test::grid_machine({.sockets = 12, .cores_per_node = 1});
  const auto hints = cpu_hints(machine, {.available = machine.cpus(), .cpus = 4});
  CHECK(hints.size() == 12);
  CHECK(text({hints.front(), hints.back()}) == "0-1! 0-11 ");
}
