// SPDX-License-Identifier: Apache-2.0
// The machines and requests that allocation is measured on.
#pragma once

#include <random>

#include "policy/allocate/allocate.hpp"
#include "tests/machines.hpp"

namespace ka::bench {

/// 256 CPUs: 2 sockets, 8 nodes, L3s of 8 cores, 2 threads a core.
inline policy::Machine large_machine() {
  return test::grid_machine(
      {.sockets = 2, .nodes_per_socket = 4, .cores_per_node = 16, .cores_per_l3 = 8});
}

/// 1024 CPUs: 4 sockets, 64 nodes.
inline policy::Machine huge_machine() {
  return test::grid_machine(
      {.sockets = 4, .nodes_per_socket = 16, .cores_per_node = 8, .cores_per_l3 = 8});
}

/// About so many percent of the CPUs, chosen one by one: few whole cores are left.
inline policy::CpuSet fragmented(const policy::Machine& machine, int percent) {
  std::mt19937 random(7);
  policy::CpuSet free;
  for (const int cpu : machine.cpus()) {
    if (static_cast<int>(random() % 100) < percent) free.add(cpu);
  }
  return free;
}

}  // namespace ka::bench
