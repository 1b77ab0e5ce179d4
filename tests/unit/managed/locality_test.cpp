// SPDX-License-Identifier: Apache-2.0
// Where containers get their CPUs for the sake of memory and devices, and where their memory comes
// from: 16 CPUs in 2 nodes.
#include "affinity/managed/locality.hpp"

#include "affinity/managed/release.hpp"
#include "tests/unit/managed/scene.hpp"

using namespace ka;
using policy::CpuSet;
using policy::managed::CpuUse;
using policy::managed::Rules;
using tests::container;
using tests::Scene;
using tests::text;

TEST_CASE("CPUs are on the node of a container's device, and where its memory has room") {
  Scene scene({.align = policy::allocate::HintPolicy::kRestricted}, {.sockets = 2});
  const auto& dir = scene.dir;
  dir.write("sys/devices/system/node/node0/meminfo",
            "Node 0 MemTotal: 8 kB\nNode 0 MemFree: 1 kB\n");
  dir.write("sys/devices/system/node/node1/meminfo",
            "Node 1 MemTotal: 8 kB\nNode 1 MemFree: 8 kB\n");
  dir.write("sys/devices/pci0/0000:01:00.0/numa_node", "1\n");
  dir.link("sys/dev/char/195:0/device", dir.path() / "sys/devices/pci0/0000:01:00.0");
  auto with_device = container("device", 2);
  with_device.devices = {{.block = false, .major = 195, .minor = 0}};
  REQUIRE(scene.manager->create(with_device));
  CHECK(text(scene.manager->updates()) == "device 4,12");
  auto with_memory = container("memory", 2);
  with_memory.needs.memory[policy::managed::kOrdinaryPage] = 4096;
  REQUIRE(scene.manager->create(with_memory));
  CHECK(text(scene.manager->updates()) == "memory 6,14");
  REQUIRE(scene.manager->create(container("plain", 2)));
  CHECK(text(scene.manager->updates()) == "plain 0,8");
  scene.restart();
  CHECK(policy::format_list(scene.manager->books().cpus_of("device")) == "4,12");
}

TEST_CASE("memory comes from the nodes of the CPUs where they have room, in the same answer") {
  const Rules follow{.bind_memory = true};
  Scene scene(follow, {.sockets = 2});
  const auto& dir = scene.dir;
  dir.write("sys/devices/system/node/has_memory", "0-1\n");
  scene.restart();
  dir.write("sys/devices/system/node/node0/meminfo",
            "Node 0 MemTotal: 8 kB\nNode 0 MemFree: 4 kB\n");
  dir.write("sys/devices/system/node/node1/meminfo",
            "Node 1 MemTotal: 8 kB\nNode 1 MemFree: 4 kB\n");
  const auto with_memory = [](const std::string& id, int cpus, std::uint64_t kib) {
    auto described = container(id, cpus);
    described.needs.memory[policy::managed::kOrdinaryPage] = kib * 1024;
    return described;
  };
  auto& manager = *scene.manager;
  const auto unbound = [&](const char* id) {
    return manager.books().entries().at(id).memory_unbound;
  };
  REQUIRE(manager.create(with_memory("fits", 2, 4)));
  CHECK(text(manager.updates()) == "fits 1,9 mems 0");
  REQUIRE(manager.create(with_memory("large", 2, 5)));
  CHECK(text(manager.updates()) == "large 2,10");
  CHECK((unbound("large") && !unbound("fits")));
  REQUIRE(manager.create(container("unlimited", 2)));
  CHECK(text(manager.updates()) == "unlimited 3,11");
  auto maybe_vm = with_memory("vm", 2, 4);
  maybe_vm.outside_vm = false;
  REQUIRE(manager.create(maybe_vm));
  CHECK(text(manager.updates()) == "vm 4,12");
  SECTION("what comes to run on other nodes may use their memory, too") {
    REQUIRE(manager.change("s-fits", std::nullopt, CpuUse::kNone));
    CHECK(text(manager.updates()).ends_with("mems 0-1"));
    CHECK(manager.updates().empty());
  }
  SECTION("in another mode all memory is theirs again, also where kubelet writes the CPUs") {
    for (const bool is_static : {true, false}) {
      dir.write("cpu_manager_state", is_static ? R"({"policyName":"static","checksum":0})"
                                               : R"({"policyName":"none","checksum":0})");
      const auto release = open_release(dir, CpuSet::range(0, 15), {0, 1});
      REQUIRE(release);
      (*release)->synchronize({with_memory("fits", 2, 4), with_memory("large", 2, 5)}, {});
      CHECK(text((*release)->updates()) ==
            (is_static ? "fits  mems 0-1" : "fits 0-15 mems 0-1, large 0-15"));
    }
  }
  SECTION("a node without memory is left out: the kernel would refuse the set") {
    dir.write("sys/devices/system/node/has_memory", "0\n");
    scene.restart();
    REQUIRE(scene.manager->change("s-fits", std::nullopt, CpuUse::kNone));
    CHECK(text(scene.manager->updates()).find("mems 0-1") == std::string::npos);
  }
  SECTION("after a restart the runtime's word says what it has") {
    scene.restart();
    auto listed = with_memory("fits", 2, 4);
    listed.cpus = {1, 9};
    listed.mems = {0};
    scene.manager->synchronize({listed}, {"s-fits"});
    CHECK(scene.manager->updates().empty());
    listed.mems = {};
    scene.manager->synchronize({listed}, {"s-fits"});
    CHECK(text(scene.manager->updates()) == "fits 1,9 mems 0");
  }
}
