// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/topology.hpp"

#include "tests/catch.hpp"

using namespace ka::policy;

namespace {

Cpu cpu(int number, int core, int socket, int node) { return {number, core, socket, node, node}; }

std::string error_of(std::vector<Cpu> cpus, std::vector<std::vector<int>> distances = {},
                     std::vector<int> nodes = {}) {
  const auto made = Topology::make(std::move(cpus), std::move(distances), std::move(nodes));
  return made ? "" : made.error();
}

}  // namespace

TEST_CASE("a topology groups its online CPUs") {
  auto cpus = std::vector{cpu(0, 0, 0, 0), cpu(4, 0, 0, 0), cpu(1, 1, 1, 1), cpu(5, 1, 1, 1)};
  cpus[3].online = false;
  const auto made = Topology::make(cpus, {{10, 21}, {21, 10}});
  REQUIRE(made);
  CHECK(made->all() == CpuSet{0, 1, 4, 5});
  CHECK(made->online() == CpuSet{0, 1, 4});
  CHECK(made->siblings(0) == CpuSet{0, 4});
  CHECK(made->siblings(5) == CpuSet{1});
  CHECK(made->siblings(77).empty());
  CHECK(made->node_cpus(1) == CpuSet{1});
  CHECK(made->nodes_of({0, 1, 99}) == NodeSet{0, 1});
  CHECK(made->distance(0, 1) == 21);
  CHECK(made->distance(0, 7) == 0);
  CHECK(made->find(2) == nullptr);
  CHECK(made->find(-1) == nullptr);
  CHECK(made->find(5)->cpu == 5);
  CHECK(made->find(6) == nullptr);  // the first beyond the last
}

TEST_CASE("nodes may be sparse, unordered and without CPUs") {
  const auto made =
      Topology::make({cpu(0, 0, 0, 4)}, {{10, 30, 40}, {30, 10, 50}, {40, 50, 10}}, {8, 4, 6});
  REQUIRE(made);
  CHECK(made->nodes() == NodeSet{4, 6, 8});
  CHECK(made->distance(4, 8) == 30);
  CHECK(made->distance(6, 4) == 50);
  CHECK(made->node_cpus(6).empty());
}

TEST_CASE("without distances the ACPI defaults apply") {
  const auto made = Topology::make({cpu(0, 0, 0, 0), cpu(1, 1, 0, 3)});
  REQUIRE(made);
  CHECK(made->distance(0, 0) == 10);
  CHECK(made->distance(0, 3) == 20);
}

TEST_CASE("impossible machines are rejected with the reason") {
  CHECK(error_of({}) == "no CPU");
  CHECK(error_of({cpu(0, 0, 0, 0), cpu(0, 1, 0, 0)}) == "cpu 0: listed twice");
  CHECK(error_of({cpu(0, 0, 0, 0), cpu(1, 0, 1, 0)}) == "core 0: lies on two sockets");
  CHECK(error_of({cpu(9000, 0, 0, 0)}) == "cpu 9000: number is out of bounds");
  CHECK(error_of({cpu(0, 0, 0, kMaxIds)}) == "cpu 0: numa is out of bounds");
  CHECK(error_of({cpu(0, 0, 0, -1)}) == "cpu 0: numa is out of bounds");
  CHECK(error_of({cpu(0, 0, 0, kMaxIds - 1)}) == "");
  CHECK(error_of({cpu(0, 0, 0, 0)}, {{10, 20}}) != "");
  CHECK(error_of({cpu(0, 0, 0, 0)}, {{-1}}) == "distances: below 0");
  CHECK(error_of({cpu(0, 0, 0, 5)}, {{10}, {10}}) != "");
  CHECK(error_of({cpu(0, 0, 0, 1)}, {}, {1, 1}) == "nodes: 1 is listed twice");
  CHECK(error_of({cpu(0, 0, 0, 1)}, {}, {-1}) == "nodes: number is out of bounds");
  CHECK(error_of({cpu(0, 0, 0, 1)}, {}, {2}) == "cpu 0: its node has no row in distances");
}
