// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/topology/picture.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include "affinity/host/topology.hpp"
#include "tests/catch.hpp"

using namespace ka;

TEST_CASE("a machine is drawn socket by socket") {
  std::vector<policy::Cpu> cpus;
  for (int i = 0; i < 8; ++i) {
    const int core = i % 4;
    cpus.push_back({.cpu = i, .core = core, .socket = core / 2, .numa = core / 2, .l3 = core / 2});
  }
  cpus[3].isolated = true;
  cpus[7].online = false;
  const auto topology =
      policy::Topology::make(cpus, {{10, 21, 30}, {21, 10, 30}, {30, 30, 10}}, {0, 1, 5});
  REQUIRE(topology);
  CHECK(cli::draw(*topology) == R"(7 CPUs on 4 cores, 2 sockets, 3 NUMA nodes, 2 L3 caches

[0 1] is a core with its CPUs.
socket 0
  node 0
    L3 0: [0 4] [1 5]
socket 1
  node 1
    L3 1: [2 6] [3]

isolated CPUs: 3
offline CPUs: 7
nodes without CPUs: 5

node distances
       0   1   5
   0  10  21  30
   1  21  10  30
   5  30  30  10
)");
}

TEST_CASE("kinds of CPUs are named if they differ") {
  const auto topology =
      policy::Topology::make({{.cpu = 0, .kind = 1}, {.cpu = 1, .core = 1, .kind = 0}});
  REQUIRE(topology);
  const std::string text = cli::draw(*topology);
  CHECK(text.find("CPUs of kind 0 (higher is faster): 1\n") != std::string::npos);
  CHECK(text.find("CPUs of kind 1 (higher is faster): 0\n") != std::string::npos);
}

TEST_CASE("the picture is at most 80 columns wide") {
  for (const char* machine : {"pack:2 l3:1 core:64 pu:4", "pack:4 l3:16 core:8 pu:2",
                              "pack:8 numa:4 core:2 pu:1", "pack:2 numa:8 core:1 pu:8"}) {
    const auto topology = host::read_synthetic(machine);
    REQUIRE(topology);
    std::istringstream lines(cli::draw(*topology));
    for (std::string line; std::getline(lines, line);) {
      INFO(machine << ": " << line);
      CHECK(line.size() <= 80);
      CHECK_FALSE(line.ends_with(' '));
    }
  }
}
