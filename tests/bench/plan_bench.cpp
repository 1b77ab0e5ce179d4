// SPDX-License-Identifier: Apache-2.0
// How long planning takes. The bounds that are promised: one sandbox of 32 vCPUs on 256 CPUs in
// 50 us, a node of 256 sandboxes in 10 ms.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "policy/plan/plan.hpp"

namespace {

using namespace ka::policy;
using namespace ka::policy::plan;

/// Two sockets of two nodes, two threads a core, an L3 for every 8 cores.
Topology server(int cpus) {
  std::vector<Cpu> list;
  const int cores = cpus / 2;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    const int core = cpu % cores;
    const int node = core * 4 / cores;
    list.push_back({.cpu = cpu, .core = core, .socket = node / 2, .numa = node, .l3 = core / 8});
  }
  return Topology::make(std::move(list)).value();
}

std::vector<VcpuFacts> guest(int vcpus, int threads) {
  std::vector<VcpuFacts> list;
  for (int i = 0; i < vcpus; ++i) {
    list.push_back({.index = i, .core = i / threads, .thread = i % threads, .numa = i * 2 / vcpus});
  }
  return list;
}

SandboxFacts large_sandbox(int threads) {
  SandboxFacts facts{.id = "s", .pod_uid = "p", .vcpus = guest(32, threads)};
  facts.iothreads = {"io1", "io2"};
  facts.containers.push_back(
      {.id = "a", .name = "app", .cpus = CpuSet::range(8, 27), .exclusive = true});
  facts.containers.push_back(
      {.id = "b", .name = "side", .cpus = CpuSet::range(140, 148), .exclusive = true});
  facts.containers.push_back({.id = "c", .name = "log", .cpus = CpuSet::range(0, 7)});
  return facts;
}

Settings settings_for(VcpuPinning pinning) {
  Settings settings;
  settings.vcpu_pinning = pinning;
  settings.housekeeping.kind = Housekeeping::Kind::kSharedPool;
  return settings;
}

void one_sandbox(benchmark::State& state, VcpuPinning pinning, int threads, bool again) {
  const Topology topology = server(256);
  const NodeView node{topology, CpuSet::range(0, 7) | CpuSet::range(200, 255), {}, {}};
  const SandboxFacts facts = large_sandbox(threads);
  const Settings settings = settings_for(pinning);
  const SandboxPlan previous = plan_sandbox(node, facts, settings, nullptr);
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan_sandbox(node, facts, settings, again ? &previous : nullptr));
  }
}

/// 256 sandboxes of which every second owns a CPU; five vCPUs each.
Snapshot full_node() {
  Snapshot node{.topology = server(256)};
  CpuSet pool = CpuSet::range(128, 255);
  for (int i = 0; i < 256; ++i) {
    const std::string number = std::to_string(1000 + i);
    SandboxFacts facts{.id = "s" + number, .pod_uid = "p" + number, .vcpus = guest(5, 1)};
    if (i % 2 == 0) {
      facts.containers.push_back({.id = "a", .cpus = {i / 2}, .exclusive = true});
    }
    facts.containers.push_back({.id = "b", .cpus = pool});
    node.sandboxes.push_back(std::move(facts));
  }
  return node;
}

void whole_node(benchmark::State& state, VcpuPinning pinning) {
  const Snapshot node = full_node();
  const Settings settings = settings_for(pinning);
  const Plan previous = plan::plan(node, settings, nullptr);
  for (auto _ : state) benchmark::DoNotOptimize(plan::plan(node, settings, &previous));
}

constexpr auto kDedicated = VcpuPinning::kDedicated;
constexpr auto kBalanced = VcpuPinning::kBalanced;

BENCHMARK_CAPTURE(one_sandbox, dedicated, kDedicated, 1, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_sandbox, again, kDedicated, 1, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_sandbox, guest_smt, kDedicated, 2, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_sandbox, balanced, kBalanced, 1, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(whole_node, dedicated, kDedicated)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_node, balanced, kBalanced)->Unit(benchmark::kMillisecond);

}  // namespace
