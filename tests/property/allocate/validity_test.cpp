// SPDX-License-Identifier: Apache-2.0
// Random requests to random machines.
#include "tests/catch.hpp"
#include "tests/property/allocate/checks.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;
using ka::test::Random;

TEST_CASE("answers are valid on random machines") {
  const unsigned seed = ka::test::first_seed();
  for (unsigned i = 0; i < 400; ++i) {
    INFO("seed " << seed + i);
    Random random(seed + i);
    const Machine machine = ka::test::random_machine(random);
    ka::test::check_validity(random, machine, 10);
  }
}

TEST_CASE("answers on random machines follow kubelet's rules, restated plainly") {
  const unsigned seed = ka::test::first_seed() + 10000;
  for (unsigned i = 0; i < 200; ++i) {
    INFO("seed " << seed + i);
    Random random(seed + i);
    const Machine machine = ka::test::random_machine(random);
    if (machine.groups(CpuLevel::kNode).size() > 8) continue;
    ka::test::check_rules(random, machine, 10);
  }
}
