// SPDX-License-Identifier: Apache-2.0
// The machines and decisions that allocation is measured on. Decisions are random, but the same in
// every run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/allocate/machine.hpp"
#include "tests/machines.hpp"

namespace ka::bench {

/// 256 CPUs: 2 sockets, 8 nodes, L3s of 8 cores, 2 threads a core.
inline policy::allocate::Machine large_machine() {
  return test::grid_machine(
      {.sockets = 2, .nodes_per_socket = 4, .cores_per_node = 16, .cores_per_l3 = 8});
}

/// 1024 CPUs: 4 sockets, 64 nodes.
inline policy::allocate::Machine huge_machine() {
  return test::grid_machine(
      {.sockets = 4, .nodes_per_socket = 16, .cores_per_node = 8, .cores_per_l3 = 8});
}

/// Returns something of its answer, so that nothing of it is left out.
using Decision = std::function<int()>;

struct Kind {
  std::string name;
  std::vector<Decision> decisions;
};

/// `count` decisions of each kind of allocation, and lists of hints. `machine` must outlive them.
std::vector<Kind> allocations(const policy::allocate::Machine& machine, int count);

/// Hints of one to four resources, any of the sets of `nodes` nodes.
Kind merges(int nodes, int count);

}  // namespace ka::bench
