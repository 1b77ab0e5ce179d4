// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/allocate/scenes.hpp"

#include <array>
#include <random>

#include "policy/allocate/allocate.hpp"
#include "policy/allocate/cpu_hints.hpp"

namespace ka::bench {
namespace {

using namespace ka::policy;
using namespace ka::policy::allocate;

/// The numbers of std::mt19937 are the same in every standard library, those of its distributions
/// are not.
using Random = std::mt19937;

int below(Random& random, int limit) {
  return static_cast<int>(random() % static_cast<unsigned>(limit));
}

/// From nearly empty to nearly full, by whole cores or CPU by CPU.
CpuSet random_part(const Machine& machine, Random& random) {
  const int percent = 15 + below(random, 86);
  const bool cores = below(random, 2) == 0;
  CpuSet part;
  for (const CpuGroup& core : machine.groups(CpuLevel::kCore)) {
    if (cores && below(random, 100) < percent) part |= core.cpus;
    for (const int cpu : core.cpus) {
      if (!cores && below(random, 100) < percent) part.add(cpu);
    }
  }
  return part;
}

Decision allocation(const Machine& machine, const Pipeline& policy, CpuRequest request) {
  return [&machine, &policy, request = std::move(request)] {
    const auto answer = allocate::allocate(machine, request, policy);
    return answer ? answer->cpus.first() : -1;
  };
}

Kind allocations_by(const Machine& machine, const std::string& name, const Pipeline& policy,
                    OptionSet options, int count) {
  Random random(20261123);
  Kind kind{name, {}};
  while (static_cast<int>(kind.decisions.size()) < count) {
    CpuRequest request{.available = random_part(machine, random), .options = options};
    if (request.available.empty()) continue;
    request.cpus = 1 + below(random, request.available.size());
    kind.decisions.push_back(allocation(machine, policy, std::move(request)));
  }
  return kind;
}

Kind hint_lists(const Machine& machine, int count) {
  Random random(20261124);
  Kind kind{"hints", {}};
  for (int i = 0; i < count; ++i) {
    CpuHintProblem problem{.available = random_part(machine, random)};
    problem.cpus = 1 + below(random, machine.cpus().size() * 3 / 4);
    kind.decisions.push_back(
        [&machine, problem] { return static_cast<int>(cpu_hints(machine, problem).size()); });
  }
  return kind;
}

std::vector<Hint> random_hints(int nodes, Random& random) {
  std::vector<Hint> hints(static_cast<std::size_t>(10 + below(random, 300)));
  for (Hint& hint : hints) {
    const std::uint64_t bits = std::uint64_t{random()} << 32 | random();
    hint = {NodeSet::from_words(std::array{bits >> (64 - nodes)}), below(random, 20) == 0};
  }
  return hints;
}

}  // namespace

std::vector<Kind> allocations(const Machine& machine, int count) {
  using enum CpuOption;
  return {
      allocations_by(machine, "packed", packed_policy(), {}, count),
      allocations_by(machine, "packed, L3s", packed_policy(), {kPreferAlignByUncoreCache}, count),
      allocations_by(machine, "distributed", distributed_policy(), {kDistributeAcrossNuma}, count),
      allocations_by(machine, "fitted", fitted_policy(), {}, count),
      hint_lists(machine, count),
  };
}

Kind merges(int nodes, int count) {
  Random random(20261125);
  Kind kind{"merge", {}};
  for (int i = 0; i < count; ++i) {
    HintProblem problem{.nodes = NodeSet::range(0, nodes - 1)};
    const int resources = 1 + below(random, 4);
    for (int j = 0; j < resources; ++j) {
      problem.providers.push_back({{"resource", random_hints(nodes, random)}});
    }
    kind.decisions.push_back([problem] { return merge_hints(problem)->preferred ? 1 : 0; });
  }
  return kind;
}

}  // namespace ka::bench
