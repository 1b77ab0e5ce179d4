// SPDX-License-Identifier: Apache-2.0
// "fitted" against every choice that there is, on small machines, and against kubelet's packed
// allocator with topology hints, on machines of any shape.
#include "policy/allocate/fitting.hpp"

#include "policy/allocate/cpu_hints.hpp"
#include "tests/catch.hpp"
#include "tests/property/allocate/random.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;
using ka::test::Random;

namespace {

/// Few enough CPUs for all choices to be tried.
constexpr int kSmall = 12;

/// Requests that are compared with kubelet's: as many as $KATA_AFFINITY_REQUESTS says.
int requests() {
  const char* text = std::getenv("KATA_AFFINITY_REQUESTS");
  return text == nullptr ? 2000 : std::stoi(text);
}

std::string text(const Spread& spread) {
  return std::to_string(spread.nodes) + " nodes, " + std::to_string(spread.sockets) + " sockets, " +
         std::to_string(spread.l3s) + " L3s, " + std::to_string(spread.broken_cores) + " broken";
}

/// The least spread of all ways to take `count` of `left`, beside `chosen`.
void try_all(const Machine& machine, const CpuSet& free, std::vector<int> left, int count,
             const CpuSet& chosen, std::optional<Spread>& best) {
  if (count == 0) {
    const Spread spread = spread_of(machine, free, chosen);
    if (!best || spread < *best) best = spread;
    return;
  }
  while (static_cast<int>(left.size()) >= count) {
    CpuSet longer = chosen;
    longer.add(left.back());
    left.pop_back();
    try_all(machine, free, left, count - 1, longer, best);
  }
}

Machine small_machine(Random& random) {
  while (true) {
    Machine machine = ka::test::random_machine(random);
    if (machine.cpus().size() <= 2 * kSmall) return machine;
  }
}

/// Cores lie in nodes and L3 caches at random: most caches lie in two nodes.
Machine overlapping_machine(Random& random) {
  std::vector<Cpu> cpus;
  for (int core = 0; core < kSmall / 2; ++core) {
    const int node = random.between(0, 1), l3 = random.between(0, 2);
    for (const int cpu : {core, core + kSmall / 2}) {
      cpus.push_back({.cpu = cpu, .core = core, .numa = node, .l3 = l3});
    }
  }
  return Machine(Topology::make(std::move(cpus)).value());
}

CpuSet some_of(Random& random, CpuSet cpus, int most) {
  while (cpus.size() > most) {
    const std::vector<int> ids = cpus.ids();
    cpus.remove(random.one_of(ids));
  }
  return cpus;
}

std::optional<NodeSet> kubelets_hint(const Machine& machine, const CpuRequest& request) {
  const CpuHintProblem problem{.available = request.available, .cpus = request.cpus};
  const HintProblem merge{.nodes = machine.topology().nodes(),
                          .providers = {{{"cpu", cpu_hints(machine, problem)}}}};
  return merge_hints(merge)->affinity;
}

CpuSet taken(const Machine& machine, const CpuRequest& request, const Pipeline& policy) {
  const auto answer = allocate::allocate(machine, request, policy);
  REQUIRE(answer);
  REQUIRE(answer->cpus.size() == request.cpus);
  REQUIRE(answer->cpus.subset_of(request.available));
  return answer->cpus;
}

void check_request(const Machine& machine, CpuRequest request) {
  const CpuSet alone = taken(machine, request, fitted_policy());
  request.numa_affinity = kubelets_hint(machine, request);
  const CpuSet kubelet = taken(machine, request, packed_policy());
  const CpuSet hinted = taken(machine, request, fitted_policy());
  const Spread theirs = spread_of(machine, request.available, kubelet);
  for (const CpuSet& ours : {alone, hinted}) {
    const Spread spread = spread_of(machine, request.available, ours);
    INFO(request.cpus << " of " << format_list(request.available) << ": " << format_list(ours)
                      << " (" << text(spread) << "), kubelet " << format_list(kubelet) << " ("
                      << text(theirs) << ')');
    CHECK(spread <= theirs);
  }
}

}  // namespace

TEST_CASE("no choice of CPUs is spread less than fitted's") {
  const unsigned seed = ka::test::first_seed() + 20000;
  for (unsigned i = 0; i < 800; ++i) {
    Random random(seed + i);
    const Machine machine = i % 2 == 0 ? small_machine(random) : overlapping_machine(random);
    CpuRequest request{.available = some_of(random, machine.cpus(), kSmall)};
    request.cpus = random.between(1, request.available.size());
    const CpuSet ours = taken(machine, request, fitted_policy());
    std::optional<Spread> best;
    try_all(machine, request.available, request.available.ids(), request.cpus, {}, best);
    INFO("seed " << seed + i << ": " << request.cpus << " of " << format_list(request.available)
                 << ", got " << format_list(ours));
    CHECK(text(spread_of(machine, request.available, ours)) == text(*best));
  }
}

TEST_CASE("fitted with full-pcpus-only finds whole cores wherever some add up") {
  const unsigned seed = ka::test::first_seed() + 30000;
  for (unsigned i = 0; i < 400; ++i) {
    Random random(seed + i);
    const Machine machine = small_machine(random);
    CpuRequest request{.available = some_of(random, machine.cpus(), kSmall),
                       .options = {CpuOption::kFullPcpusOnly}};
    request.cpus = random.between(0, request.available.size());
    INFO("seed " << seed + i << ": " << request.cpus << " of " << format_list(request.available));
    const auto ours = allocate::allocate(machine, request, fitted_policy());
    CHECK(ours.has_value() == allocate::allocate(machine, request, packed_policy()).has_value());
    if (ours) CHECK(machine.whole_cores(ours->cpus));
  }
}

TEST_CASE("fitted is never spread more than kubelet's allocator with hints") {
  const unsigned seed = ka::test::first_seed() + 40000;
  const int wanted = requests();
  for (int i = 0; i < wanted; i += 20) {
    Random random(seed + static_cast<unsigned>(i));
    const Machine machine = ka::test::random_machine(random);
    INFO("seed " << seed + static_cast<unsigned>(i));
    for (int j = 0; j < 20; ++j) {
      CpuRequest request{.available = random.part_of(machine.cpus(), random.between(20, 100))};
      if (request.available.empty()) continue;
      request.cpus = random.between(1, request.available.size());
      check_request(machine, request);
    }
  }
}
