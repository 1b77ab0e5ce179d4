// SPDX-License-Identifier: Apache-2.0
// Recorded machines: each loads, agrees with what its kernel said of its NUMA nodes, and is the
// same after printing it as JSON and reading it back.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>

#include "affinity/documents/topology.hpp"
#include "affinity/host/topology.hpp"
#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/recorded_machines.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
namespace fs = std::filesystem;

namespace {

struct Machine {
  const char* archive;
  const char* online;
  const char* offline;
  int sockets, cores, caches, kinds;
  const char* nodes;
};

/// A recording with the files of a hybrid CPU for some of its equal CPUs: hwloc 2.9 sees one kind,
/// hwloc 2.12 three.
constexpr int kMixedKinds = 0;

constexpr Machine kMachines[] = {
    {"16amd64-4n4c-cgroup-distance-merge", "0-15", "", 4, 16, 4, 1, "0-3"},
    {"16em64t-4s2c2t-offlines", "0-1,3-4,6-12,15", "2,5,13-14", 4, 7, 4, 1, "0"},
    {"2-socket-4-node-40-core", "0-79", "", 2, 40, 2, kMixedKinds, "0-3"},
    {"20em64t-hybrid-1p6c2t+2ca4co1t", "0-19", "", 1, 14, 1, 2, "0"},
    {"32intel64-2p8co2t+8ve", "0-31", "", 2, 16, 2, 1, "0-1"},
    {"40intel64-2g2n4c+pcilocality", "0-39", "", 4, 40, 4, 1, "0-3"},
    {"48amd64-4pa2n6c-sparse", "0-47", "", 4, 48, 8, 1, "0-2,33-34,45,72-73"},
    {"64amd64-4s2n4ca2co", "0-63", "", 4, 64, 8, 1, "0-7"},
    {"96em64t-4no4pa3ca2co", "0-95", "", 16, 96, 16, 1, "0-3"},
    {"offline-cpu0-node0", "4-20", "0-3,21-23", 2, 17, 2, 1, "1"},
};

int distinct(const policy::Topology& machine, int policy::Cpu::* id) {
  std::set<int> ids;
  for (const policy::Cpu& cpu : machine.cpus()) {
    if (cpu.online) ids.insert(cpu.*id);
  }
  return static_cast<int>(ids.size());
}

/// What the kernel's own files say of the CPUs of each node.
void check_nodes(const policy::Topology& machine, const fs::path& root) {
  for (const int node : machine.nodes()) {
    const auto directory = root / "sys/devices/system/node" / ("node" + std::to_string(node));
    const auto map = base::read_file(directory / "cpumap");
    if (!map) continue;
    const auto cpus = policy::parse_mask<policy::CpuTag>(*map);
    REQUIRE(cpus);
    // CPUs whose own node is offline are counted to the first one that is not.
    CHECK((*cpus & machine.online()).subset_of(machine.node_cpus(node)));
  }
}

void check(const Machine& expected, const policy::Topology& machine) {
  CHECK(policy::format_list(machine.online()) == expected.online);
  CHECK(policy::format_list(machine.all() - machine.online()) == expected.offline);
  CHECK(policy::format_list(machine.nodes()) == expected.nodes);
  CHECK(distinct(machine, &policy::Cpu::socket) == expected.sockets);
  CHECK(distinct(machine, &policy::Cpu::core) == expected.cores);
  CHECK(distinct(machine, &policy::Cpu::l3) == expected.caches);
  const int kinds = distinct(machine, &policy::Cpu::kind);
  CHECK((kinds == expected.kinds || (expected.kinds == kMixedKinds && (kinds == 1 || kinds == 3))));
}

void check_round_trip(const policy::Topology& machine, const tests::TempDir& dir) {
  dir.write("machine.json", boost::json::serialize(documents::to_json(machine)));
  const auto again = host::load_topology(dir.path() / "machine.json");
  REQUIRE(again);
  CHECK(*again == machine);
}

}  // namespace

TEST_CASE("every recorded machine loads and round-trips") {
  const fs::path directory = test::recorded_machines_directory();
  if (directory.empty()) {
    std::cout << "SKIPPED: no recorded machines (shared/machines, or KATA_AFFINITY_MACHINES=DIR)\n";
    return;
  }
  for (const Machine& expected : kMachines) {
    INFO(expected.archive);
    const tests::TempDir dir;
    const fs::path root =
        test::unpack_machine(directory / (std::string(expected.archive) + ".tar.bz2"), dir.path());
    const auto machine = host::read_machine(root);
    REQUIRE(machine);
    check(expected, *machine);
    check_nodes(*machine, root);
    check_round_trip(*machine, dir);
  }
}
