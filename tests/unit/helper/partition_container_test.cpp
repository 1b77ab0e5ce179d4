// SPDX-License-Identifier: Apache-2.0
// Containers without a VM: their own cgroup becomes a partition, and is left as it was.
#include <string>

#include "affinity/helper/partition_keeper.hpp"
#include "affinity/helper/partition_service.hpp"
#include "tests/catch.hpp"
#include "tests/unit/helper/partition_scene.hpp"

using namespace ka;
using namespace ka::helper;
using namespace ka::tests;
using policy::CpuSet;
using policy::Partition;

namespace {

const std::string kId(64, 'c');
const std::string kContainer = "/kubepods/pod3/" + kId;

/// The scene of VMMs, and a container of runc with process 300.
struct Scene : PartitionScene {
  Scene() {
    node.process(300, 1, "db", "/usr/bin/db");
    tree.add("/kubepods/pod3");
    tree.add(kContainer, {6, 7});
    tree.put(300, kContainer);
    before = tree.text();
  }

  Partition container(const CpuSet& cpus = {6, 7}) const {
    return {.vmm = key(300), .cpus = cpus, .vcpus = {}, .of_container = true};
  }
  bool is_as_it_was() const { return tree.text() == before && !has_file() && !keeper->holds(); }
};

}  // namespace

TEST_CASE("a container's cgroup becomes a partition, and a member again") {
  Scene scene;
  const bool is_deeper = GENERATE(false, true);
  if (is_deeper) {
    scene.tree.add(kContainer + "/container", {});
    scene.tree.put(300, kContainer + "/container");
    scene.before = scene.tree.text();
  }
  scene.keep({scene.container()});
  CHECK(scene.problem().empty());
  CHECK(scene.tree.read(kContainer, "cpuset.cpus.partition").value() == "root\n");
  CHECK(scene.tree.cpus_of(kContainer) == "6-7");
  CHECK(scene.tree.cpus_of("/kubepods/pod1") == "0-5");
  CHECK(scene.tree.where(300) == (is_deeper ? kContainer + "/container" : kContainer));
  scene.keep({});
  CHECK(scene.is_as_it_was());
}

TEST_CASE("a partition of a container that others undo is made again, and outlives the helper") {
  Scene scene;
  scene.keep({scene.container()});
  REQUIRE(scene.tree.write(kContainer, "cpuset.cpus.partition", "member\n"));
  scene.keeper->check();
  CHECK(scene.tree.cpus_of("/kubepods/pod1") == "0-5");
  scene.restart();
  scene.keeper->check();
  CHECK(scene.tree.cpus_of("/kubepods/pod1") == "0-5");
  scene.restart();
  scene.keep({});
  CHECK(scene.is_as_it_was());
}

TEST_CASE("a container beside a VMM's vCPUs: each keeps its partition when the other goes") {
  Scene scene;
  scene.keep({scene.container(), scene.of(100, {2, 3})});
  CHECK(scene.tree.cpus_of("/kubepods/pod2") == "0-1,4-5");
  scene.keep({scene.container()});
  CHECK(scene.tree.cpus_of("/kubepods/pod2") == "0-5");
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.tree.cpus_of("/kubepods/pod2") == "0-1,4-7");
}

TEST_CASE("a container whose cgroup allows other CPUs has no partition, and loses one") {
  Scene scene;
  const bool has_one = GENERATE(false, true);
  if (has_one) scene.keep({scene.container()});
  scene.tree.configure(kContainer, {5, 6, 7});
  scene.keeper->keep({scene.container()});
  CHECK(scene.problem() == "its cgroup allows CPUs 5-7");
  scene.tree.configure(kContainer, {6, 7});
  CHECK(scene.tree.text() == scene.before);
}

TEST_CASE("a container's partition without a process, or with another one's number, is none") {
  Scene scene;
  Partition other = scene.container();
  SECTION("it is another process") { other.vmm.start_time += 1; }
  SECTION("it is the host's") { scene.tree.put(300, "/kubepods/pod3"); }
  scene.keep({other});
  CHECK_FALSE(scene.problem().empty());
  scene.keep({});
  CHECK(scene.tree.text() == scene.before);
}

TEST_CASE("a request for a container's partition has no vCPUs, and no other wishes") {
  const auto read = [](const std::string& more) {
    return read_partitions(R"({"partitions":[{"vmm":{"pid":3,"tid":3,"start_time":1},"cpus":"2",)" +
                           more + "}]}");
  };
  const auto good = read(R"("vcpus":[],"priority":0,"full_power":false,"of_container":true)");
  REQUIRE(good);
  CHECK(good->front().of_container);
  const std::string vcpu = R"("vcpus":[{"pid":3,"tid":4,"start_time":1}],)";
  for (const std::string& more :
       {vcpu + R"("priority":0,"full_power":false,"of_container":true)",
        std::string(R"("vcpus":[],"priority":1,"full_power":false,"of_container":true)"),
        std::string(R"("vcpus":[],"priority":0,"full_power":true,"of_container":true)"),
        std::string(R"("vcpus":[],"priority":0,"full_power":false)")}) {
    CAPTURE(more);
    CHECK_FALSE(read(more));
  }
}
