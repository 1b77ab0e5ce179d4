// SPDX-License-Identifier: Apache-2.0
// Machines of unusual shapes go through all of the allocator: nothing is refused for which there
// are CPUs.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "affinity/documents/topology.hpp"
#include "policy/allocate/cpu_hints.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/property/allocate/every_answer.hpp"

using namespace ka;
using namespace ka::policy;
using namespace ka::policy::allocate;
using test::answers_of;
using test::through_json;

namespace {

/// A machine of two nodes with CPUs, 0 and 3, between nodes that only have memory.
Topology with_memory_nodes() {
  std::vector<Cpu> cpus = test::grid_cpus({.sockets = 2, .cores_per_node = 8});
  for (Cpu& cpu : cpus) cpu.numa *= 3;
  return Topology::make(std::move(cpus), {}, {0, 1, 3, 7}).value();
}

}  // namespace

TEST_CASE("unusual machines give valid answers") {
  const test::Grid grids[] = {
      {.sockets = 2, .cores_per_node = 64, .threads = 1},                           // Arm
      {.sockets = 2, .nodes_per_socket = 2, .cores_per_node = 8, .threads = 8},     // SMT8
      {.sockets = 4, .nodes_per_socket = 16, .cores_per_node = 4, .threads = 2},    // 64 nodes
      {.sockets = 4, .nodes_per_socket = 16, .cores_per_node = 16, .threads = 1}};  // 1,024 CPUs
  for (const test::Grid& grid : grids) {
    const Topology topology = test::grid_machine(grid).topology();
    INFO(topology.online().size() << " CPUs, " << topology.nodes().size() << " nodes");
    answers_of(topology);
    CHECK(through_json(topology) == topology);
  }
}

TEST_CASE("nodes without CPUs survive JSON, and appear only in hints") {
  const Topology topology = with_memory_nodes();
  CHECK(through_json(topology) == topology);
  CHECK(through_json(topology).nodes() == NodeSet{0, 1, 3, 7});
  answers_of(topology);
  for (const Hint& hint :
       cpu_hints(Machine(topology), {.available = topology.online(), .cpus = 4})) {
    CHECK(hint.affinity->subset_of(NodeSet{0, 3}));
  }
}

TEST_CASE("a JSON topology names its nodes without CPUs") {
  const auto read = [](const char* nodes) {
    return documents::topology_from_json(boost::json::parse(
        std::string(R"({"cpus":[{"cpu":0,"core":0,"socket":0,"numa":2}],"nodes":)") + nodes + '}'));
  };
  REQUIRE(read("[2,5]"));
  CHECK(read("[2,5]")->nodes() == NodeSet{2, 5});
  CHECK(!read("[5]"));
  CHECK(!read("[2,2]"));
  CHECK(!read("2"));
}
