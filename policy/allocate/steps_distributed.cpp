// SPDX-License-Identifier: Apache-2.0
// Select, Score and Allocate of the distributed policy (takeByTopologyNUMADistributed).
#include <algorithm>

#include "policy/allocate/allocate.hpp"
#include "policy/allocate/split.hpp"
#include "policy/allocate/steps.hpp"

namespace ka::policy::allocate::steps {
namespace {

/// align-by-socket affects the distribution from kubelet 1.37 on (KEP-3327).
constexpr int kAlignsDistribution = 37;

bool aligns_by_socket(const Cycle& cycle) {
  return cycle.request.options.has(CpuOption::kAlignBySocket) &&
         cycle.request.kubelet >= kAlignsDistribution;
}

SplitProblem problem_of(const Cycle& cycle) {
  SplitProblem problem{.rooms = {}, .cpus = cycle.needed, .group = 1};
  const bool whole_cores = cycle.request.options.has(CpuOption::kFullPcpusOnly);
  problem.group = whole_cores ? cycle.machine.average_core() : cycle.request.group_size;
  const bool by_socket = aligns_by_socket(cycle);
  for (const int node : cycle.free.order(CpuLevel::kNode)) {
    problem.rooms.push_back({node, cycle.free.count(CpuLevel::kNode, node)});
    if (!by_socket) continue;
    problem.sockets.push_back(cycle.machine.around(CpuLevel::kNode, node, CpuLevel::kSocket));
  }
  return problem;
}

/// The fewest nodes that could hold the request, were they all empty, and the most that it can be
/// split over (rangeNUMANodesNeededToSatisfy).
struct NodeRange {
  int least = 1;
  int most = 1;
};

int divide_up(int number, int by) { return (number - 1) / by + 1; }

NodeRange node_range(const Cycle& cycle, const SplitProblem& problem) {
  const int nodes = static_cast<int>(cycle.machine.groups(CpuLevel::kNode).size());
  const int groups_per_node =
      divide_up(divide_up(cycle.machine.cpus().size(), problem.group), nodes);
  const int groups = divide_up(problem.cpus, problem.group);
  const int available = static_cast<int>(problem.rooms.size());
  return {divide_up(groups, groups_per_node), std::min(groups, available)};
}

int position_of(const SplitProblem& problem, int node) {
  const auto found = std::ranges::find(problem.rooms, node, &Share::node);
  return static_cast<int>(found - problem.rooms.begin());
}

std::vector<int> combination_of(const SplitProblem& problem, const Candidate& candidate) {
  std::vector<int> combination;
  combination.reserve(candidate.shares.size());
  for (const Share& share : candidate.shares) {
    combination.push_back(position_of(problem, share.node));
  }
  return combination;
}

void list_splits(Cycle& cycle, int nodes) {
  for (const std::vector<int>& combination : even_combinations(cycle.split, nodes)) {
    Candidate candidate;
    candidate.shares.reserve(combination.size());
    for (const int position : combination) {
      candidate.shares.push_back({cycle.split.rooms[static_cast<std::size_t>(position)].node, 0});
    }
    cycle.candidates.push_back(std::move(candidate));
  }
}

}  // namespace

void even_splits(Cycle& cycle) {
  if (cycle.stage != Stage::kSplits) return;
  cycle.split = problem_of(cycle);
  if (cycle.split.cpus % cycle.split.group != 0) return;
  const NodeRange range = node_range(cycle, cycle.split);
  for (int nodes = range.least; nodes <= range.most && cycle.candidates.empty(); ++nodes) {
    list_splits(cycle, nodes);
  }
  cycle.note({.what = Finding::What::kListed, .number = static_cast<int>(cycle.candidates.size())});
}

/// No balance is worse than the nodes' CPUs are many.
void one_socket(Cycle& cycle) {
  if (cycle.stage != Stage::kSplits || !aligns_by_socket(cycle)) return;
  const double worst = cycle.machine.cpus().size();
  for (Candidate& candidate : cycle.candidates) {
    const std::vector<int> combination = combination_of(cycle.split, candidate);
    if (!on_one_socket(cycle.split, combination)) candidate.score += worst;
  }
}

void balance(Cycle& cycle) {
  if (cycle.stage != Stage::kSplits) return;
  for (Candidate& candidate : cycle.candidates) {
    Split split = best_split(cycle.split, combination_of(cycle.split, candidate));
    candidate.shares = std::move(split.shares);
    candidate.score += split.balance;
    if (!cycle.request.explain) continue;
    cycle.note(
        {.what = Finding::What::kScored, .shares = candidate.shares, .score = split.balance});
  }
}

void take_split(Cycle& cycle) {
  if (cycle.stage != Stage::kSplits) return;
  const Candidate& best = cycle.candidates.front();
  CpuSet taken;
  for (const Share& share : best.shares) {
    const CpuSet cpus = pack(cycle.machine, cycle.free.in(CpuLevel::kNode, share.node), share.cpus);
    cycle.take(cpus);
    taken |= cpus;
  }
  if (!cycle.request.explain) return;
  cycle.note(
      {.what = Finding::What::kChosen, .cpus = taken, .shares = best.shares, .score = best.score});
}

}  // namespace ka::policy::allocate::steps
