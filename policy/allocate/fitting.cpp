// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/fitting.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "policy/allocate/allocate.hpp"
#include "policy/allocate/cpu_hints.hpp"
#include "policy/allocate/exact_fit.hpp"

namespace ka::policy::allocate {
namespace {

using Fit = std::optional<Fitted>;

void keep_better(Fit& best, Fit other) {
  if (other && (!best || other->cost < best->cost)) best = std::move(other);
}

using Groups = std::vector<std::pair<CpuLevel, int>>;

/// Those with free CPUs that a level above cuts in parts.
Groups overlapping(const Machine& machine, const CpuSet& free) {
  const Nesting& nesting = machine.nesting();
  Groups found;
  for (std::size_t inner = 1; inner < 3; ++inner) {
    const int count = static_cast<int>(machine.groups(nesting[inner]).size());
    for (int group = 0; group < count; ++group) {
      const bool used = machine.group(nesting[inner], group).cpus.intersects(free);
      if (used && machine.is_cut(nesting, inner, group)) found.emplace_back(nesting[inner], group);
    }
  }
  return found;
}

/// With the groups that `used` has a bit for, paid for as a whole, and without the others.
Fit best_with(const Machine& machine, const FittingProblem& problem, const Groups& groups,
              unsigned used) {
  ExactFit fit(machine, problem);
  CpuSet free = problem.free;
  Cost paid;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& [level, number] = groups[i];
    const CpuSet& cpus = machine.group(level, number).cpus;
    if ((used >> i & 1) == 0) {
      free -= cpus;
      continue;
    }
    fit.join(level, number);
    if (!cpus.intersects(problem.beside)) paid = paid + charge_for(level, 0);
  }
  Fit best = fit.best_of(free);
  if (best) best->cost = best->cost + paid;
  return best;
}

int touched(const Machine& machine, CpuLevel level, const CpuSet& cpus) {
  const auto lies_on = [&](const CpuGroup& group) { return group.cpus.intersects(cpus); };
  return static_cast<int>(std::ranges::count_if(machine.groups(level), lies_on));
}

/// kubelet's answers: without hints, and with the merged hint of the CPUs themselves.
std::vector<CpuSet> packed_answers(const Machine& machine, const FittingProblem& problem) {
  CpuRequest request{.cpus = problem.cpus, .available = problem.free};
  if (problem.whole_cores) request.options.add(CpuOption::kFullPcpusOnly);
  const HintProblem hints{
      .nodes = machine.topology().nodes(),
      .providers = {
          {{"cpu", cpu_hints(machine, {.available = problem.free, .cpus = problem.cpus})}}}};
  std::vector<CpuSet> answers;
  for (const bool hinted : {false, true}) {
    const auto merged = merge_hints(hints);
    if (hinted && merged) request.numa_affinity = merged->affinity;
    if (auto answer = allocate(machine, request, packed_policy())) answers.push_back(answer->cpus);
  }
  return answers;
}

/// Where too many groups overlap: each part of one counts, and kubelet's answers are the measure.
std::optional<CpuSet> nearly_best(const Machine& machine, const FittingProblem& problem) {
  ExactFit fit(machine, problem);
  const Fit choice = fit.best_of(problem.free);
  if (!choice) return std::nullopt;
  CpuSet best = choice->cpus;
  for (CpuSet& answer : packed_answers(machine, problem)) {
    const auto spread = [&](const CpuSet& cpus) {
      return spread_of(machine, problem.free, cpus | problem.beside);
    };
    if (spread(answer) < spread(best)) best = std::move(answer);
  }
  return best;
}

}  // namespace

Spread spread_of(const Machine& machine, const CpuSet& free, const CpuSet& cpus) {
  const auto broken = [&](const CpuGroup& core) {
    return core.cpus.intersects(cpus) && core.cpus.subset_of(free) && !core.cpus.subset_of(cpus);
  };
  return {touched(machine, CpuLevel::kNode, cpus), touched(machine, CpuLevel::kSocket, cpus),
          touched(machine, CpuLevel::kL3, cpus),
          static_cast<int>(std::ranges::count_if(machine.groups(CpuLevel::kCore), broken))};
}

std::optional<CpuSet> best_fit(const Machine& machine, const FittingProblem& problem) {
  const Groups groups = overlapping(machine, problem.free);
  if (groups.size() > kExactOverlaps) return nearly_best(machine, problem);
  Fit best;
  for (unsigned used = 0; used < 1U << groups.size(); ++used) {
    keep_better(best, best_with(machine, problem, groups, used));
  }
  return best ? std::optional(std::move(best->cpus)) : std::nullopt;
}

}  // namespace ka::policy::allocate
