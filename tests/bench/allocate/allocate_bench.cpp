// SPDX-License-Identifier: Apache-2.0
// How long one decision takes. kubelet's own code measured 1.6 to 9.7 ms for the first five.
#include <benchmark/benchmark.h>

#include "policy/allocate/hints.hpp"
#include "tests/bench/allocate/scenes.hpp"

using namespace ka::policy;

namespace {

void measure(benchmark::State& state, const Machine& machine, const CpuRequest& request) {
  for (auto _ : state) benchmark::DoNotOptimize(allocate(machine, request));
}

CpuRequest packed(CpuSet available, int cpus) {
  return {.cpus = cpus, .available = std::move(available)};
}

CpuRequest distributed(CpuSet available, int cpus) {
  return {.cpus = cpus,
          .available = std::move(available),
          .options = {CpuOption::kDistributeAcrossNuma}};
}

void packed_2_of_256(benchmark::State& state) {
  const Machine machine = ka::bench::large_machine();
  measure(state, machine, packed(machine.cpus(), 2));
}

void packed_28_of_256(benchmark::State& state) {
  const Machine machine = ka::bench::large_machine();
  measure(state, machine, packed(machine.cpus(), 28));
}

void packed_100_of_256_fragmented(benchmark::State& state) {
  const Machine machine = ka::bench::large_machine();
  measure(state, machine, packed(ka::bench::fragmented(machine, 60), 100));
}

void distributed_28_of_256(benchmark::State& state) {
  const Machine machine = ka::bench::large_machine();
  measure(state, machine, distributed(machine.cpus(), 28));
}

void distributed_100_of_256_fragmented(benchmark::State& state) {
  const Machine machine = ka::bench::large_machine();
  measure(state, machine, distributed(ka::bench::fragmented(machine, 60), 100));
}

void packed_300_of_1024_fragmented(benchmark::State& state) {
  const Machine machine = ka::bench::huge_machine();
  measure(state, machine, packed(ka::bench::fragmented(machine, 60), 300));
}

void distributed_300_of_1024_fragmented(benchmark::State& state) {
  const Machine machine = ka::bench::huge_machine();
  measure(state, machine, distributed(ka::bench::fragmented(machine, 60), 300));
}

/// Every set of 8 nodes as a hint, from each of 4 providers: 255^4 permutations. Nobody prefers a
/// set that all others prefer too, so that all have to be considered.
HintProblem eight_nodes() {
  HintProblem problem{.nodes = NodeSet::range(0, 7)};
  for (int provider = 0; provider < 4; ++provider) {
    std::vector<Hint> hints;
    for (std::uint64_t mask = 1; mask < 256; ++mask) {
      hints.push_back({NodeSet::from_words({mask}), mask == std::uint64_t{1} << provider});
    }
    problem.providers.push_back({{"resource", std::move(hints)}});
  }
  return problem;
}

/// 64 nodes: each provider has a hint for every node and for every run of 2 to 5 neighbours.
HintProblem many_nodes() {
  HintProblem problem{.nodes = NodeSet::range(0, 63)};
  for (int provider = 0; provider < 4; ++provider) {
    std::vector<Hint> hints;
    for (int first = 0; first < 64; ++first) {
      for (int last = first; last < std::min(first + 5, 64); ++last) {
        hints.push_back({NodeSet::range(first, last), first == 8 * provider && last == first});
      }
    }
    problem.providers.push_back({{"resource", std::move(hints)}});
  }
  return problem;
}

void merge(benchmark::State& state, const HintProblem& problem) {
  for (auto _ : state) benchmark::DoNotOptimize(merge_hints(problem));
}

void merge_8_nodes_4_providers_255_hints(benchmark::State& state) { merge(state, eight_nodes()); }
void merge_64_nodes_4_providers_310_hints(benchmark::State& state) { merge(state, many_nodes()); }

BENCHMARK(packed_2_of_256)->Unit(benchmark::kMicrosecond);
BENCHMARK(packed_28_of_256)->Unit(benchmark::kMicrosecond);
BENCHMARK(packed_100_of_256_fragmented)->Unit(benchmark::kMicrosecond);
BENCHMARK(distributed_28_of_256)->Unit(benchmark::kMicrosecond);
BENCHMARK(distributed_100_of_256_fragmented)->Unit(benchmark::kMicrosecond);
BENCHMARK(packed_300_of_1024_fragmented)->Unit(benchmark::kMicrosecond);
BENCHMARK(distributed_300_of_1024_fragmented)->Unit(benchmark::kMicrosecond);
BENCHMARK(merge_8_nodes_4_providers_255_hints)->Unit(benchmark::kMicrosecond);
BENCHMARK(merge_64_nodes_4_providers_310_hints)->Unit(benchmark::kMicrosecond);

}  // namespace
