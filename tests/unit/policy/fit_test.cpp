// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/fit.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

TEST_CASE("a guest node goes to the host node where most of it is already") {
  std::vector<Cpu> cpus;
  for (int i = 0; i < 8; ++i) cpus.push_back({i, i, i / 4, i / 4, i / 4});
  std::vector<VcpuFacts> guest;
  for (int i = 0; i < 5; ++i) guest.push_back({.index = i, .core = i, .numa = i < 3 ? 0 : 1});
  // vCPU 0, of guest node 0, is on host node 1.
  std::vector<Slot> slots = {{.cpu = 0, .core = 0, .node = 0},
                             {.cpu = 1, .core = 1, .node = 0},
                             {.cpu = 4, .core = 4, .node = 1, .vcpu = 0},
                             {.cpu = 5, .core = 5, .node = 1},
                             {.cpu = 6, .core = 6, .node = 1}};
  fit(*Topology::make(std::move(cpus)), guest, {false, true, true, true, true}, slots);
  for (const Slot& slot : slots) CHECK(slot.node == (guest[slot.vcpu].numa == 0 ? 1 : 0));
}
