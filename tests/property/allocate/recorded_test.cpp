// SPDX-License-Identifier: Apache-2.0
// Random requests to the recorded machines: hybrid and sparse ones, offline CPUs, up to 8 nodes.
#include "tests/catch.hpp"
#include "tests/property/allocate/checks.hpp"
#include "tests/recorded_machines.hpp"

using namespace ka::policy;
using ka::test::Random;

TEST_CASE("answers are valid, and what kubelet's rules give, on recorded machines") {
  const unsigned seed = ka::test::first_seed();
  for (const auto& [name, topology] : ka::test::recorded_machines()) {
    INFO(name << ", seed " << seed);
    Random random(seed);
    const Machine machine(topology);
    ka::test::check_validity(random, machine, 200);
    ka::test::check_rules(random, machine, 20);
  }
}
