// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/topology.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using policy::CpuSet;

namespace {

std::string error_of(const base::Result<policy::Topology>& result) {
  return result ? "" : result.error().message;
}

/// A kernel's trees with 2 sockets of 2 cores. CPU 3 is offline, CPU 2 isolated, only socket 0 has
/// an L3, node 5 has no CPU.
class FakeKernel {
 public:
  FakeKernel() {
    write("cpu/online", "0-2");
    write("cpu/possible", "0-3");
    write("cpu/isolated", "2");
    write("cpu/nohz_full", "1-2");
    for (int cpu = 0; cpu < 4; ++cpu) write_cpu(cpu);
    write_node(0, "0-1", "00000003", "10 21 30");
    write_node(1, "2", "00000004", "21 10 30");
    write_node(5, "", "00000000", "30 30 10");
    write("node/online", "0-1,5");
  }
  const std::filesystem::path& root() const { return dir_.path(); }
  void write(const std::string& name, const std::string& text) const {
    dir_.write("sys/devices/system/" + name, text + '\n');
  }

 private:
  void write_cpu(int cpu) const {
    const std::string name = "cpu/cpu" + std::to_string(cpu);
    write(name + "/online", cpu == 3 ? "0" : "1");
    dir_.link("sys/devices/system/" + name + "/node" + std::to_string(cpu / 2),
              "../../node/node" + std::to_string(cpu / 2));
    if (cpu == 3) return;
    write(name + "/topology/physical_package_id", std::to_string(cpu / 2));
    write(name + "/topology/core_id", std::to_string(cpu % 2));
    const std::string self = std::to_string(1 << cpu);
    const std::string socket = cpu < 2 ? "3" : "4";
    for (const char* file : {"thread_siblings", "core_cpus"}) {
      write(name + "/topology/" + file, self);
    }
    for (const char* file : {"core_siblings", "package_cpus"}) {
      write(name + "/topology/" + file, socket);
    }
    if (cpu >= 2) return;
    write(name + "/cache/index0/level", "3");
    write(name + "/cache/index0/type", "Unified");
    write(name + "/cache/index0/size", "8192K");
    write(name + "/cache/index0/shared_cpu_map", "3");
  }
  void write_node(int node, const std::string& list, const std::string& map,
                  const std::string& distances) const {
    const std::string name = "node/node" + std::to_string(node);
    write(name + "/cpulist", list);
    write(name + "/cpumap", map);
    write(name + "/distance", distances);
    write(name + "/meminfo", "Node " + std::to_string(node) + " MemTotal: 1048576 kB");
  }

  tests::TempDir dir_;
};

}  // namespace

TEST_CASE("the host has the CPUs that the kernel reports online") {
  const auto host = host::load_topology("host");
  REQUIRE(host);
  CHECK(host->online().size() == static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  CHECK(host->distances().size() == static_cast<std::size_t>(host->nodes().size()));
}

TEST_CASE("a synthetic machine has dense ids") {
  const auto made = host::load_topology("synthetic:pack:2 numa:2 l3:1 core:4 pu:2");
  REQUIRE(made);
  CHECK(made->online() == CpuSet::range(0, 31));
  CHECK(made->nodes() == policy::NodeSet::range(0, 3));
  CHECK(*made->find(11) == policy::Cpu{.cpu = 11, .core = 5, .socket = 0, .numa = 1, .l3 = 1});
  CHECK(made->core_cpus(15) == CpuSet{30, 31});
  CHECK(made->distance(0, 3) == 20);
}

TEST_CASE("nodes smaller than a package keep their CPUs, and share an L3 if none is known") {
  const auto made = host::read_synthetic("numa:2 core:2 pu:2");
  REQUIRE(made);
  CHECK(made->node_cpus(1) == CpuSet::range(4, 7));
  CHECK(made->l3_cpus(made->find(4)->l3) == CpuSet::range(0, 7));
}

TEST_CASE("kernel trees are read with offline and isolated CPUs and empty nodes") {
  const FakeKernel kernel;
  const auto made = host::read_machine(kernel.root());
  REQUIRE(error_of(made) == "");
  CHECK(made->online() == CpuSet{0, 1, 2});
  CHECK(made->all() == CpuSet{0, 1, 2, 3});
  CHECK(made->isolated() == CpuSet{2});
  CHECK(made->nohz_full() == CpuSet{1, 2});
  CHECK(made->nodes() == policy::NodeSet{0, 1, 5});
  CHECK(made->node_cpus(5).empty());
  CHECK(made->distance(1, 5) == 30);
  CHECK(made->l3_cpus(made->find(0)->l3) == CpuSet{0, 1});
  CHECK(made->l3_cpus(made->find(2)->l3) == CpuSet{2});
  CHECK(made->find(3)->numa == 1);
  CHECK(made->find(3)->socket == 1);
  CHECK(made->siblings(0) == CpuSet{0});
  CHECK(std::getenv("HWLOC_FSROOT") == nullptr);
}

TEST_CASE("a topology that is there and cannot be read is an error, and not a flat machine") {
  const FakeKernel kernel;
  const auto system = kernel.root() / "sys/devices/system";
  const auto block = [&system](const std::string& name) {
    std::filesystem::remove_all(system / name);
    std::filesystem::create_directories(system / name);  // reading it fails with EISDIR
  };
  SECTION("the cores and packages of a CPU") {
    for (const char* file : {"thread_siblings", "core_cpus", "core_siblings", "package_cpus"}) {
      block(std::string("cpu/cpu0/topology/") + file);
    }
    CHECK(error_of(host::read_machine(kernel.root())).find("cpu0/topology") != std::string::npos);
  }
  SECTION("the CPUs of a node") {
    block("node/node1/cpumap");
    CHECK(error_of(host::read_machine(kernel.root())).find("node1") != std::string::npos);
  }
  SECTION("an L3 cache") {
    block("cpu/cpu2/cache/index3/shared_cpu_map");
    CHECK(error_of(host::read_machine(kernel.root())).find("cpu2/cache") != std::string::npos);
  }
}

TEST_CASE("a machine whose kernel has no topology is flat") {
  const FakeKernel kernel;
  for (const char* cpu : {"0", "1", "2"}) {
    std::filesystem::remove_all(kernel.root() / "sys/devices/system/cpu" /
                                (std::string("cpu") + cpu) / "topology");
  }
  const auto made = host::read_machine(kernel.root());
  REQUIRE(error_of(made) == "");
  CHECK(made->siblings(0) == CpuSet{0});
}

TEST_CASE("a kernel without nohz_full says (null)") {
  const FakeKernel kernel;
  kernel.write("cpu/nohz_full", "  (null)");
  const auto made = host::read_machine(kernel.root());
  REQUIRE(error_of(made) == "");
  CHECK(made->nohz_full().empty());
}

TEST_CASE("a malformed list of isolated CPUs is an error") {
  const FakeKernel kernel;
  kernel.write("cpu/isolated", "0-");
  CHECK(error_of(host::read_machine(kernel.root())).find("cpu/isolated: ") != std::string::npos);
}

TEST_CASE("files are recognized by their first character") {
  const tests::TempDir dir;
  dir.write("m.json", R"( {"cpus":[{"cpu":4,"core":0,"socket":0,"numa":0}]})");
  dir.write("m.xml", R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x7" allowed_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
    <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="2" local_memory="1048576"/>
    <object type="Core" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="3">
      <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
      <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
    </object>
  </object>
</topology>
)");
  CHECK(host::load_topology(dir.path() / "m.json")->all() == CpuSet{4});
  const auto xml = host::load_topology(dir.path() / "m.xml");
  REQUIRE(error_of(xml) == "");
  CHECK(xml->online() == CpuSet{0, 1});
  CHECK(xml->all() == CpuSet{0, 1, 2});
  CHECK(xml->siblings(0) == CpuSet{0, 1});
}

TEST_CASE("an invalid machine is rejected by name") {
  const tests::TempDir dir;
  dir.write("bad.json", R"({"cpus":[{"cpu":0,"core":0,"socket":0}]})");
  dir.write("bad.xml", "<topology");
  const auto path = [&dir](const char* name) { return (dir.path() / name).string(); };
  CHECK(error_of(host::load_topology(path("bad.json"))) ==
        path("bad.json") + ": cpus[0].numa: missing");
  CHECK(error_of(host::load_topology(path("bad.xml"))).starts_with(path("bad.xml") + ": "));
  CHECK(error_of(host::load_topology(path("none"))).starts_with(path("none") + ": "));
  CHECK(error_of(host::load_topology(dir.path())).find("has no sys/devices/system/cpu") !=
        std::string::npos);
  CHECK(error_of(host::load_topology("synthetic:pack:0")).starts_with("synthetic:pack:0: "));
  CHECK(error_of(host::load_topology("")) != "");
}

TEST_CASE("what a recorded machine says is invalid, what cannot be read of this one may pass") {
  const tests::TempDir dir;
  const std::string cpu = "sys/devices/system/cpu/cpu0/";
  for (const char* file : {"thread_siblings", "core_cpus", "core_siblings", "package_cpus"}) {
    dir.write(cpu + "topology/" + file, "1\n");
  }
  dir.write(cpu + "online", "0\n");
  const std::string why = "sys/devices/system/cpu: hwloc cannot build a topology from it";
  const std::string root = dir.path().string();
  CHECK(host::load_topology(root).error() ==
        base::make_error(base::ErrorCode::kInvalid, root + '/' + why));
  CHECK(host::load_topology(root + "/none").error().code == base::ErrorCode::kInvalid);

  ::setenv("HWLOC_FSROOT", root.c_str(), 1);  // hwloc sees no CPU, as where a read fails
  const auto host = host::load_topology("host");
  ::unsetenv("HWLOC_FSROOT");
  REQUIRE_FALSE(host);
  CHECK(host.error() == base::make_error(base::ErrorCode::kTransient, '/' + why));
}
