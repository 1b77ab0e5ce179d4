// SPDX-License-Identifier: Apache-2.0
// Sort, Filter and PostFilter: what is taken first, and from which CPUs.
#include <algorithm>

#include "policy/allocate/fitting.hpp"
#include "policy/allocate/steps.hpp"

namespace ka::policy::allocate::steps {
namespace {

bool wants(const Cycle& cycle, CpuOption option) { return cycle.request.options.has(option); }

void note_order(Cycle& cycle) {
  for (const Stage stage : cycle.stages) {
    cycle.note({.what = Finding::What::kOrdered, .stage = stage});
  }
}

/// kubelet's getAlignedCPUs; empty without a NUMA affinity.
CpuSet aligned_cpus(const Cycle& cycle) {
  const NodeSet nodes = cycle.request.numa_affinity.value_or(NodeSet{});
  return wants(cycle, CpuOption::kAlignBySocket) ? cycle.machine.cpus_of_sockets_of(nodes)
                                                 : cycle.machine.cpus_of_nodes(nodes);
}

/// All free CPUs in the L3s that `cpus` lie in, as far as these share a node and a socket.
CpuSet room_around(const Machine& machine, const CpuSet& pool, const CpuSet& cpus) {
  CpuSet room;
  for (const int cpu : cpus) {
    if (room.contains(cpu)) continue;
    CpuSet near = pool;
    for (const CpuLevel level : {CpuLevel::kSocket, CpuLevel::kNode, CpuLevel::kL3}) {
      near &= machine.group(level, machine.group_of(level, cpu)).cpus;
    }
    room |= near;
  }
  return room;
}

}  // namespace

void coarse_to_fine(Cycle& cycle) {
  std::vector<Stage> stages{Stage::kSockets, Stage::kNodes};
  if (cycle.machine.nodes_outermost()) std::ranges::reverse(stages);
  if (wants(cycle, CpuOption::kPreferAlignByUncoreCache)) {
    stages.insert(stages.end(), {Stage::kL3s, Stage::kPartOfL3});
  }
  if (!wants(cycle, CpuOption::kDistributeAcrossCores)) stages.push_back(Stage::kCores);
  stages.push_back(Stage::kCpus);
  cycle.stages = std::move(stages);
  note_order(cycle);
}

void split_first(Cycle& cycle) {
  cycle.stages.insert(cycle.stages.begin(), Stage::kSplits);
  cycle.note({.what = Finding::What::kOrdered, .stage = Stage::kSplits});
}

void cores_only(Cycle& cycle) {
  cycle.stages = {Stage::kCores};
  note_order(cycle);
}

/// kubelet's enforceSMTAlignment. On a machine whose cores differ there is no number to be a
/// multiple of; whether whole cores add up to the request shows when they are taken.
void whole_core_request(Cycle& cycle) {
  if (!wants(cycle, CpuOption::kFullPcpusOnly)) return;
  const int per_core = cycle.machine.average_core();
  if (cycle.machine.uniform_cores() && cycle.request.cpus % per_core != 0) {
    cycle.refuse(Refusal::Reason::kNotWholeCores, cycle.request.cpus, 0);
    return;
  }
  const CpuSet reserved = cycle.request.reserved & cycle.machine.cpus();
  const CpuSet usable = cycle.pools.front() - cycle.machine.with_siblings(reserved);
  if (cycle.needed > usable.size()) {
    cycle.refuse(Refusal::Reason::kNotEnoughWholeCores, cycle.request.cpus, usable.size());
  }
}

void reserved(Cycle& cycle) { cycle.remove(cycle.request.reserved); }

void cpu_class(Cycle& cycle) {
  if (cycle.request.cpu_class == CpuClass::kAny) return;
  const Machine& machine = cycle.machine;
  cycle.remove(machine.cpus() - cpus_of_class(machine.topology(), cycle.request.cpu_class));
}

void numa_affinity(Cycle& cycle) { cycle.prefer(aligned_cpus(cycle)); }

void near_held(Cycle& cycle) {
  if (cycle.request.held.empty()) return;
  for (const CpuLevel level :
       {CpuLevel::kSocket, CpuLevel::kNode, CpuLevel::kL3, CpuLevel::kCore}) {
    CpuSet near;
    for (const int cpu : cycle.request.held & cycle.machine.cpus()) {
      near |= cycle.machine.group(level, cycle.machine.group_of(level, cpu)).cpus;
    }
    if (!near.empty()) cycle.prefer(near);
  }
}

void isolated_first(Cycle& cycle) {
  if (!cycle.request.prefer_isolated) return;
  cycle.prefer(cycle.machine.topology().isolated());
  cycle.prefer(cycle.machine.topology().nohz_full());
}

/// A core that preferences have split comes with the last of its CPUs.
void whole_cores(Cycle& cycle) {
  CpuSet seen, placed;
  std::vector<CpuSet> pools = cycle.pools;
  for (CpuSet& pool : pools) {
    seen |= pool;
    const CpuSet whole = cycle.machine.whole_cores_in(seen);
    pool = whole - placed;
    placed = whole;
  }
  cycle.remove(cycle.machine.cpus() - placed);
  cycle.pools = std::move(pools);
}

void one_pool(Cycle& cycle) {
  for (std::size_t i = 1; i < cycle.pools.size(); ++i) cycle.pools.front() |= cycle.pools[i];
  cycle.pools.resize(1);
}

/// In the first pool that is large enough; those before it are taken as a whole.
void least_spread(Cycle& cycle) {
  FittingProblem problem{.free = {},
                         .beside = cycle.request.held,
                         .cpus = cycle.needed,
                         .whole_cores = wants(cycle, CpuOption::kFullPcpusOnly)};
  for (const CpuSet& pool : cycle.pools) {
    if (pool.size() < problem.cpus) {
      problem.beside |= pool;
      problem.cpus -= pool.size();
      continue;
    }
    problem.free = pool;
    break;
  }
  if (problem.cpus == 0 || problem.free.empty()) return;
  const auto fit = best_fit(cycle.machine, problem);
  if (!fit) return;
  const bool by_number = wants(cycle, CpuOption::kDistributeAcrossCores);
  cycle.prefer(problem.beside |
               (by_number ? room_around(cycle.machine, problem.free, *fit) : *fit));
}

/// kubelet takes the aligned CPUs, all of them when they are too few, and then tries the rest
/// (allocateCPUs); where that is not enough, its error counts the rest alone.
void spill(Cycle& cycle) {
  CpuSet all;
  for (const CpuSet& pool : cycle.pools) all |= pool;
  if (cycle.needed > all.size()) {
    const int aligned = (all & aligned_cpus(cycle)).size();
    cycle.refuse(Refusal::Reason::kNotEnough, cycle.needed - aligned, all.size() - aligned);
    return;
  }
  while (cycle.pools.front().size() < cycle.needed) {
    const CpuSet pool = cycle.pools.front();
    cycle.note({.what = Finding::What::kSpilled, .cpus = pool});
    cycle.take(pool);
    cycle.pools.erase(cycle.pools.begin());
  }
}

}  // namespace ka::policy::allocate::steps
