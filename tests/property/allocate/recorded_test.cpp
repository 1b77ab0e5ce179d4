// SPDX-License-Identifier: Apache-2.0
// Random requests to the recorded machines: hybrid and sparse ones, offline CPUs, up to 8 nodes.
#include <hwloc.h>

#include <cstdlib>

#include "affinity/host/topology.hpp"
#include "tests/catch.hpp"
#include "tests/property/allocate/checks.hpp"
#include "tests/property/allocate/every_answer.hpp"
#include "tests/recorded_machines.hpp"
#include "tests/temp_dir.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;
using ka::test::Random;

namespace {

/// What `lstopo FILE.xml` writes for a recorded machine.
void export_xml(const std::filesystem::path& root, const std::filesystem::path& file) {
  ::setenv("HWLOC_FSROOT", root.c_str(), 1);
  hwloc_topology_t topology = nullptr;
  REQUIRE(hwloc_topology_init(&topology) == 0);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  CHECK(hwloc_topology_load(topology) == 0);
  CHECK(hwloc_topology_export_xml(topology, file.c_str(), 0) == 0);
  hwloc_topology_destroy(topology);
  ::unsetenv("HWLOC_FSROOT");
}

}  // namespace

TEST_CASE("answers on recorded machines are valid, and follow kubelet's rules") {
  const unsigned seed = ka::test::first_seed();
  for (const auto& [name, topology] : ka::test::recorded_machines()) {
    INFO(name << ", seed " << seed);
    Random random(seed);
    const Machine machine(topology);
    ka::test::check_validity(random, machine, 200);
    ka::test::check_rules(random, machine, 20);
  }
}

TEST_CASE("recorded machines give the same answers from /sys, XML and JSON") {
  const auto directory = ka::test::recorded_machines_directory();
  if (directory.empty()) return;  // the other test says so
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".bz2") continue;
    INFO(entry.path().filename().string());
    const ka::tests::TempDir dir;
    const auto root = ka::test::unpack_machine(entry.path(), dir.path());
    const auto sys = ka::host::read_machine(root);
    REQUIRE(sys);
    const std::string answers = ka::test::answers_of(*sys);
    export_xml(root, dir.path() / "machine.xml");
    const auto xml = ka::host::read_xml(dir.path() / "machine.xml");
    REQUIRE(xml);
    CHECK(ka::test::answers_of(*xml) == answers);
    CHECK(ka::test::through_json(*sys) == *sys);
  }
}
