// SPDX-License-Identifier: Apache-2.0
// Random machines and requests, from a seed that is printed when a property fails.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "policy/allocate/allocate.hpp"
#include "tests/machines.hpp"

namespace ka::test {

/// $KATA_AFFINITY_SEED, else a fixed one.
inline unsigned first_seed() {
  const char* text = std::getenv("KATA_AFFINITY_SEED");
  return text == nullptr ? 20240611U : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

class Random {
 public:
  explicit Random(unsigned seed) : line_(seed) {}

  int below(int limit) { return static_cast<int>(line_() % static_cast<unsigned>(limit)); }
  int between(int least, int most) { return least + below(most - least + 1); }
  bool chance(int percent) { return below(100) < percent; }

  template <typename Value>
  Value one_of(const std::vector<Value>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

  template <typename Set>
  Set part_of(const Set& set, int percent) {
    Set part;
    for (const int id : set) {
      if (chance(percent)) part.add(id);
    }
    return part;
  }

 private:
  std::mt19937 line_;
};

/// Any shape: nodes inside sockets or sockets inside nodes, 1 to 4 threads, L3s of any size, sparse
/// and shuffled numbers, offline CPUs, cores of different sizes.
inline policy::allocate::Machine random_machine(Random& random) {
  Grid grid{.sockets = random.between(1, 4),
            .nodes_per_socket = random.one_of<int>({1, 1, 2, 4}),
            .cores_per_node = random.between(1, 8),
            .threads = random.one_of<int>({1, 2, 2, 4}),
            .cores_per_l3 = random.between(0, 5)};
  std::vector<policy::Cpu> cpus = grid_cpus(grid);
  if (random.chance(20)) {
    for (policy::Cpu& cpu : cpus) cpu.numa /= 2;
  }
  const int stride = random.between(1, 3);
  for (policy::Cpu& cpu : cpus) cpu.cpu *= stride;
  if (random.chance(40)) {
    for (policy::Cpu& cpu : cpus) cpu.online = random.chance(85);
    cpus.front().online = true;
  }
  if (random.chance(30)) {
    for (policy::Cpu& cpu : cpus) cpu.kind = cpu.core % 2;
  }
  for (policy::Cpu& cpu : cpus) cpu.isolated = random.chance(10);
  return machine_of(std::move(cpus));
}

}  // namespace ka::test
