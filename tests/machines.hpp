// SPDX-License-Identifier: Apache-2.0
// Machines for tests of allocation.
#pragma once

#include <vector>

#include "policy/allocate/machine.hpp"

namespace ka::test {

/// A regular machine. CPUs are numbered as Linux does on x86: the first threads of all cores, node
/// by node, then their second threads.
struct Grid {
  int sockets = 1;
  int nodes_per_socket = 1;
  int cores_per_node = 4;
  int threads = 2;
  int cores_per_l3 = 0;  ///< 0: one L3 a node
};

inline std::vector<policy::Cpu> grid_cpus(const Grid& grid) {
  std::vector<policy::Cpu> cpus;
  const int cores = grid.sockets * grid.nodes_per_socket * grid.cores_per_node;
  const int cores_per_l3 = grid.cores_per_l3 > 0 ? grid.cores_per_l3 : grid.cores_per_node;
  for (int core = 0; core < cores; ++core) {
    const int node = core / grid.cores_per_node;
    for (int thread = 0; thread < grid.threads; ++thread) {
      cpus.push_back({.cpu = core + thread * cores,
                      .core = core,
                      .socket = node / grid.nodes_per_socket,
                      .numa = node,
                      .l3 = core / cores_per_l3});
    }
  }
  return cpus;
}

inline policy::allocate::Machine machine_of(std::vector<policy::Cpu> cpus) {
  return policy::allocate::Machine(policy::Topology::make(std::move(cpus)).value());
}

inline policy::allocate::Machine grid_machine(const Grid& grid) {
  return machine_of(grid_cpus(grid));
}

/// Two fast cores with two threads (CPUs 0-3) and four efficient ones (CPUs 4-7), one node.
inline policy::allocate::Machine hybrid_machine() {
  std::vector<policy::Cpu> cpus;
  for (int cpu = 0; cpu < 8; ++cpu) {
    const bool fast = cpu < 4;
    cpus.push_back({.cpu = cpu, .core = fast ? cpu / 2 : cpu - 2, .kind = fast ? 1 : 0});
  }
  return machine_of(std::move(cpus));
}

}  // namespace ka::test
