// SPDX-License-Identifier: Apache-2.0
// What a guest's agent is asked for.
#include "policy/plan/guest.hpp"

#include <cstdint>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace scenario;

TEST_CASE("a guest is asked by hardware ids, in their order, whatever the VMM's numbers are") {
  Case c{.topology = machine(1, 8, 2),
         .pool = "0-1",
         .facts = sandbox(3, {owner("a", "2-3"), shared("b", "0-1")})};
  const std::vector<int> ids{4, 1, 2};
  for (std::size_t i = 0; i < ids.size(); ++i) c.facts.vcpus[i].apic_id = ids[i];
  const GuestSpec spec = guest_spec(c.plan(), c.facts.vcpus, c.topology, {}, false);
  std::vector<std::uint64_t> ordered;
  for (const GuestVcpu& vcpu : spec.vcpus) ordered.push_back(vcpu.hardware_id);
  CHECK(ordered == std::vector<std::uint64_t>{1, 2, 4});
  REQUIRE(spec.containers.size() == 2);
  CHECK(spec.containers[0].hardware_ids == std::vector<std::uint64_t>{1, 2});
  CHECK(spec.containers[1].hardware_ids == std::vector<std::uint64_t>{4});
}

TEST_CASE("in a guest common threads run on every CPU that is not kept for a container") {
  GuestSpec spec;
  spec.vcpus = {{.hardware_id = 1, .index = 0, .common = true},
                {.hardware_id = 2, .index = 1, .common = false},
                {.hardware_id = 9, .index = 2, .common = false}};
  std::vector<GuestCpu> cpus(3);
  for (int i = 0; i < 3; ++i) cpus[static_cast<std::size_t>(i)].number = i;
  for (GuestCpu& cpu : cpus) cpu.online = true;
  cpus[0].hardware_id = 1;
  cpus[1].hardware_id = 2;
  CHECK(place_in_guest(spec, cpus).common == GuestCpuSet{0, 2});
  spec.vcpus[0].common = false;
  cpus[2].hardware_id = 9;
  CHECK(place_in_guest(spec, cpus).common == GuestCpuSet{0, 1, 2});  // nothing else is there
}
