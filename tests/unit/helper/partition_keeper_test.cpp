// SPDX-License-Identifier: Apache-2.0
// Partitions of dedicated vCPUs: made, kept, recorded, refused, and put back.
#include "affinity/helper/partition_keeper.hpp"

#include "tests/catch.hpp"
#include "tests/unit/helper/partition_scene.hpp"

using namespace ka;
using namespace ka::helper;
using namespace ka::tests;
using policy::CpuSet;
using policy::Partition;

TEST_CASE("vCPUs are alone in their partition, and nothing is left of it in the end") {
  PartitionScene scene;
  scene.tree.configure(kOne, {0, 1, 2, 3});
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.problem().empty());
  CHECK(scene.tree.isolated() == "2-3");
  CHECK(scene.threads(100) == std::string(kOne) + ' ' + kOfOne + ' ' + kOfOne);
  CHECK(scene.tree.cpus_of(kOne) == "0-1");
  CHECK(scene.tree.cpus_of("/") == "0-1,4-7");
  CHECK_FALSE(scene.keeper->is_unfinished());

  scene.keep({});
  CHECK(scene.is_as_before());
}

TEST_CASE("a partition that is as wanted is not written again") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  scene.tree.writes = 0;
  scene.keep({scene.of(100, {2, 3})});
  scene.keeper->check();
  CHECK(scene.tree.writes == 0);
}

TEST_CASE("the controller is switched off again only where it was off") {
  PartitionScene scene;
  const bool was_on = GENERATE(false, true);
  if (!was_on) REQUIRE(scene.tree.write(kOne, "cgroup.subtree_control", "-cpuset"));
  scene.before = scene.tree.text();
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.tree.isolated() == "2-3");
  scene.keep({});
  CHECK(scene.is_as_before());
}

TEST_CASE("two pods share the cgroups above: what one adds or leaves is no matter of the other") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3}), scene.of(200, {4, 5})});
  CHECK(scene.tree.isolated() == "2-5");
  CHECK(scene.tree.exclusive("/kubepods") == "2-5");
  CHECK(scene.tree.exclusive("/kubepods/pod1") == "2-3");
  scene.keep({scene.of(200, {4, 5})});
  CHECK(scene.tree.isolated() == "4-5");
  CHECK(scene.tree.exclusive("/kubepods") == "4-5");
  scene.keep({});
  CHECK(scene.is_as_before());
}

TEST_CASE("exclusive CPUs of others above stay theirs") {
  PartitionScene scene;
  REQUIRE(scene.tree.write("/kubepods", "cpuset.cpus.exclusive", "3,7"));
  scene.before = scene.tree.text();
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.tree.exclusive("/kubepods") == "2-3,7");
  scene.keep({});
  CHECK(scene.is_as_before());
}

TEST_CASE("other CPUs and vCPUs: it follows") {
  PartitionScene scene;
  scene.tree.configure(kOne, {0, 1, 2, 3, 6});
  scene.before = scene.tree.text();
  scene.keep({{scene.key(100), {2}, {scene.key(101)}, 0, false}});
  CHECK(scene.threads(100) == std::string(kOne) + ' ' + kOfOne + ' ' + kOne);
  scene.keep({scene.of(100, {2, 3, 6})});
  CHECK(scene.tree.isolated() == "2-3,6");
  CHECK(scene.tree.where(102) == kOfOne);
  scene.keep({{scene.key(100), {3}, {scene.key(102)}, 0, false}});
  CHECK(scene.tree.isolated() == "3");
  CHECK(scene.threads(100) == std::string(kOne) + ' ' + kOne + ' ' + kOfOne);
  CHECK(scene.tree.exclusive("/kubepods/pod1") == "3");
  scene.keep({});
  CHECK(scene.is_as_before());
}

TEST_CASE("a CPU goes from one pod to another, whichever is named first") {
  PartitionScene scene;
  scene.tree.configure(kTwo, {0, 1, 3, 4, 5});
  const bool loser_first = GENERATE(false, true);
  scene.keep({scene.of(100, {2, 3}), scene.of(200, {4, 5})});
  const Partition loser = scene.of(100, {2}), winner = scene.of(200, {3, 4, 5});
  scene.keep(loser_first ? std::vector{loser, winner} : std::vector{winner, loser});
  CHECK(scene.problem(0).empty());
  CHECK(scene.problem(1).empty());
  CHECK(scene.tree.exclusive("/kubepods/pod1") == "2");
  CHECK(scene.tree.exclusive("/kubepods/pod2") == "3-5");
}

TEST_CASE("Kata moves all threads back into the sandbox's cgroup: the vCPUs return") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  scene.tree.put(101, kOne);
  scene.tree.put(102, kOne);
  scene.keeper->check();
  CHECK(scene.threads(100) == std::string(kOne) + ' ' + kOfOne + ' ' + kOfOne);
}

TEST_CASE("a thread that a vCPU has started does not stay with it") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  scene.tree.put(105, kOfOne);
  scene.keeper->check();
  CHECK(scene.tree.where(105) == kOne);
}

TEST_CASE("a partition that another program ends or makes invalid is made again") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  SECTION("exclusive CPUs above it are taken away") {
    REQUIRE(scene.tree.write("/kubepods", "cpuset.cpus.exclusive", "7"));
    CHECK(scene.tree.isolated().empty());
    scene.keeper->check();
    CHECK(scene.tree.exclusive("/kubepods") == "2-3,7");
  }
  SECTION("the controller is switched off") {
    REQUIRE(scene.tree.write(kOne, "cgroup.subtree_control", "-cpuset"));
    scene.keeper->check();
  }
  SECTION("it is a member") {
    REQUIRE(scene.tree.write(kOfOne, "cpuset.cpus.partition", "member"));
    scene.keeper->check();
  }
  CHECK(scene.tree.isolated() == "2-3");
  CHECK(scene.problem().empty());
  constexpr const char* kLine = "a partition that another program undid is made again";
  CHECK(scene.lines.find(kLine) != std::string::npos);
  CHECK(scene.keeper->times_undone(scene.key(100)) == 1);
  scene.lines.clear();
  scene.keeper->check();
  scene.keep({scene.of(100, {2})});
  CHECK(scene.lines.find(kLine) == std::string::npos);
  scene.tree.put(101, kOne);
  scene.keeper->check();
  CHECK(scene.lines.find(kLine) != std::string::npos);
  CHECK(scene.keeper->times_undone(scene.key(100)) == 2);
}

TEST_CASE("a partition that could not be made at first, or a helper left half made, nobody undid") {
  PartitionScene scene;
  scene.tree.refuses["/kubepods/pod1/one/kata-affinity/cgroup.threads"] = EBUSY;
  scene.keep({scene.of(100, {2, 3})});
  REQUIRE_FALSE(scene.problem().empty());
  if (GENERATE(false, true)) scene.restart();
  scene.tree.refuses.clear();
  scene.keep({scene.of(100, {2, 3})});
  REQUIRE(scene.problem().empty());
  CHECK(scene.keeper->times_undone(scene.key(100)) == 0);
  SECTION("what is undone afterwards counts once, also if it cannot be mended at once") {
    scene.tree.put(101, kOne);
    scene.tree.refuses["/kubepods/pod1/one/kata-affinity/cgroup.threads"] = EBUSY;
    scene.keeper->check();
    CHECK(scene.keeper->times_undone(scene.key(100)) == 0);
    scene.tree.refuses.clear();
    scene.keeper->check();
    scene.keeper->check();
    CHECK(scene.keeper->times_undone(scene.key(100)) == 1);
  }
}

TEST_CASE("the VMM ends: its cgroup can be removed at once") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3}), scene.of(200, {4, 5})});
  for (const int tid : {100, 101, 102}) scene.tree.end(tid);
  CHECK_FALSE(scene.tree.remove(kOne));
  scene.keeper->ended(scene.key(100));
  CHECK(scene.tree.remove(kOne));
  CHECK(scene.tree.isolated() == "4-5");
  CHECK(scene.tree.exclusive("/kubepods/pod1").empty());
  CHECK(scene.keeper->state().partitions.size() == 1);
}

TEST_CASE("the cgroup is gone with all that was in it: nothing is left to put back") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  for (const int tid : {100, 101, 102}) scene.tree.end(tid);
  for (const char* cgroup : {kOfOne, kOne, "/kubepods/pod1"}) REQUIRE(scene.tree.remove(cgroup));
  scene.keep({});
  CHECK(scene.tree.exclusive("/kubepods").empty());
  CHECK_FALSE(scene.keeper->holds());
  CHECK_FALSE(scene.has_file());
}

TEST_CASE("where the VMM's other threads would have no CPU there is no partition") {
  PartitionScene scene;
  scene.tree.configure(kOne, {2, 3});
  scene.before = scene.tree.text();
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.problem() ==
        "its cgroup allows no other CPUs, which the VMM's other threads need "
        "(cgroup = \"manage\" gives them the shared pool)");
  CHECK(scene.tree.text() == scene.before);
  scene.tree.configure(kOne, {0, 1, 2, 3});
  scene.keeper->check();
  CHECK_FALSE(scene.problem().empty());
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.problem().empty());

  scene.tree.configure(kOne, {2, 3});
  scene.keeper->check();
  CHECK_FALSE(scene.problem().empty());
  CHECK(scene.tree.isolated().empty());
  CHECK(scene.tree.where(101) == kOne);
}

TEST_CASE("a kernel before 6.7, and one without cgroup v2, are named") {
  PartitionScene scene;
  SECTION("no remote partitions") {
    scene.tree.has_exclusive = false;
    scene.keep({scene.of(100, {2, 3})});
    CHECK(scene.problem() ==
          "/kubepods has no cpuset.cpus.exclusive: the kernel is older than 6.7, or the cpuset "
          "controller is off");
    CHECK(scene.tree.writes == 0);
    scene.keep({});
    CHECK(scene.is_as_before());
  }
  SECTION("no cgroup v2") {
    scene.tree.version = 1;
    scene.keep({scene.of(100, {2, 3})});
    CHECK(scene.keeper->state().problem == "it takes cgroup v2");
    CHECK(scene.tree.writes == 0);
  }
}

TEST_CASE(
    "what the kernel refuses is tried some times, leaves nothing behind, and is logged once") {
  PartitionScene scene;
  scene.tree.add("/kubepods/pod9");
  REQUIRE(scene.tree.write("/kubepods/pod9", "cpuset.cpus.exclusive", "3"));
  scene.before = scene.tree.text();
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.keeper->is_unfinished());
  for (int i = 0; i < 5; ++i) scene.keeper->check();
  CHECK_FALSE(scene.keeper->is_unfinished());
  CHECK_FALSE(scene.problem().empty());
  CHECK(scene.tree.text() == scene.before);
  CHECK(scene.tree.where(101) == kOne);
  scene.tree.writes = 0;
  scene.keeper->check();
  scene.keep({scene.of(100, {2, 3})});
  const auto first = scene.lines.find("there is no partition");
  REQUIRE(first != std::string::npos);
  CHECK(scene.lines.find("there is no partition", first + 1) == std::string::npos);
}

TEST_CASE("a partition that is there survives a failure that passes") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  scene.tree.put(101, kOne);
  scene.tree.refuses["/kubepods/pod1/one/kata-affinity/cgroup.threads"] = EBUSY;
  scene.keeper->check();
  CHECK(scene.tree.isolated() == "2-3");
  CHECK(scene.keeper->is_unfinished());
  CHECK_FALSE(scene.problem().empty());
  scene.tree.refuses.clear();
  scene.keeper->check();
  CHECK(scene.problem().empty());
  CHECK(scene.tree.where(101) == kOfOne);
}

TEST_CASE("a cgroup of our name that is not ours is left alone") {
  PartitionScene scene;
  scene.tree.add(kOfOne);
  scene.before = scene.tree.text();
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.problem() ==
        "there is a cgroup /kubepods/pod1/one/kata-affinity that the helper "
        "has not made");
  CHECK(scene.tree.text() == scene.before);
}

TEST_CASE("a VMM in the root, or beside another VMM, has no partition") {
  PartitionScene scene;
  SECTION("root") {
    scene.tree.put(100, "/");
    scene.keep({scene.of(100, {2, 3})});
    CHECK(scene.problem() == "the VMM has no cgroup of its own");
  }
  SECTION("another VMM") {
    for (const int tid : {200, 201, 202}) scene.tree.put(tid, kOne);
    scene.keep({scene.of(100, {2}), scene.of(200, {3})});
    CHECK(scene.problem(0).empty());
    CHECK(scene.problem(1) == "its cgroup has another partition");
  }
}

TEST_CASE("where a VMM was moved to another cgroup, its partition moves with it") {
  PartitionScene scene;
  scene.tree.add("/kubepods/pod1/new", {0, 1, 2, 3});
  scene.before = scene.tree.text();
  scene.keep({scene.of(100, {2, 3})});
  for (const int tid : {100, 101, 102}) scene.tree.put(tid, "/kubepods/pod1/new");
  scene.keeper->check();
  CHECK(scene.problem() == "");
  CHECK(scene.tree.where(101) == "/kubepods/pod1/new/kata-affinity");
  CHECK_FALSE(*scene.tree.has(kOfOne));
  scene.keep({});
  CHECK(scene.tree.text() == scene.before);
}

TEST_CASE("vCPUs in cgroups of their own, as libvirt has them, stay there") {
  PartitionScene scene;
  scene.tree.add("/kubepods/pod1/one/vcpu1");
  scene.tree.put(101, "/kubepods/pod1/one/vcpu1");
  scene.before = scene.tree.text();
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.problem() == "its vCPUs are in other cgroups than the VMM");
  CHECK(scene.tree.where(101) == "/kubepods/pod1/one/vcpu1");
  CHECK(scene.tree.text() == scene.before);
}

TEST_CASE("two VMMs swap CPUs, and a third one's come free") {
  PartitionScene scene;
  for (const char* cgroup : {kOne, kTwo}) scene.tree.configure(cgroup, {0, 1, 2, 3, 4, 5, 6});
  scene.keep({scene.of(100, {2, 3}), scene.of(200, {4, 5})});
  scene.keep({scene.of(100, {4, 5}), scene.of(200, {2, 3})});
  CHECK(scene.problem(0).empty());
  CHECK(scene.problem(1).empty());
  CHECK(scene.tree.exclusive("/kubepods/pod1") == "4-5");
  scene.keep({scene.of(100, {5, 2})});
  CHECK(scene.problem(0).empty());
  CHECK(scene.tree.exclusive("/kubepods/pod1") == "2,5");
  CHECK(scene.tree.isolated() == "2,5");
}

TEST_CASE("a process without a vCPU of a known VMM is none") {
  PartitionScene scene;
  Partition wanted = scene.of(100, {2, 3});
  wanted.vcpus = {};
  scene.keep({wanted});
  CHECK(scene.problem() == "none of its vCPUs is there");
  CHECK(scene.tree.writes == 0);
}

TEST_CASE("threads of other programs are never moved") {
  PartitionScene scene;
  scene.node.process(300, 1, "sshd", "/usr/sbin/sshd");
  scene.tree.add("/system.slice", {});
  scene.tree.put(300, "/system.slice");
  scene.keep({{scene.key(300), {2, 3}, {scene.key(300)}, 0, false}});
  CHECK(scene.problem() == "the thread is not of a known VMM");
  CHECK(scene.tree.where(300) == "/system.slice");
}

TEST_CASE("a thread that ended, or is another one by now, is left out") {
  PartitionScene scene;
  Partition wanted = scene.of(100, {2, 3});
  wanted.vcpus[1].start_time += 1;
  scene.keep({wanted});
  CHECK(scene.problem().empty());
  CHECK(scene.threads(100) == std::string(kOne) + ' ' + kOfOne + ' ' + kOne);
}

TEST_CASE("a VMM of another start time is another one") {
  PartitionScene scene;
  Partition wanted = scene.of(100, {2, 3});
  wanted.vmm.start_time += 1;
  scene.keep({wanted});
  CHECK(scene.problem() == "the thread has ended");
  CHECK(scene.tree.writes == 0);
}

TEST_CASE("what a partition takes is recorded before it is written") {
  PartitionScene scene;
  bool all = true;
  scene.tree.before_write = [&](const std::string& path) {
    const auto records = scene.file().load();
    if (!records || !records->partitions.contains(scene.key(100))) all = false;
    const bool is_above = path == "/kubepods/cpuset.cpus.exclusive";
    if (is_above && records && !records->added.contains("/kubepods")) all = false;
  };
  scene.keep({scene.of(100, {2, 3})});
  CHECK(all);
}

TEST_CASE("killed at any write, the next helper restores or completes") {
  PartitionScene scene;
  struct Killed {};
  if (GENERATE(false, true)) {
    REQUIRE(scene.tree.write(kOne, "cgroup.subtree_control", "-cpuset\n"));
    scene.before = scene.tree.text();
  }
  const int at = GENERATE(range(0, 20));  // more than making and undoing take
  int number = 0;
  scene.tree.before_write = [&](const std::string&) {
    if (number++ == at) throw Killed{};
  };
  const bool undoes = GENERATE(false, true);
  try {
    scene.keep({scene.of(100, {2, 3})});
    if (undoes) scene.keep({});
  } catch (const Killed&) {
  }
  scene.tree.before_write = {};
  scene.restart();
  SECTION("restored") {
    scene.keep({});
    CHECK(scene.is_as_before());
  }
  SECTION("completed") {
    scene.keep({scene.of(100, {2, 3})});
    CHECK(scene.problem().empty());
    CHECK(scene.tree.isolated() == "2-3");
    scene.keep({});
    CHECK(scene.is_as_before());
  }
}

TEST_CASE("a helper that is started again keeps what it holds, without a request") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  scene.restart();
  CHECK(scene.keeper->holds());
  scene.tree.put(101, kOne);
  scene.keeper->check();
  CHECK(scene.threads(100) == std::string(kOne) + ' ' + kOfOne + ' ' + kOfOne);
}

TEST_CASE("where it cannot be recorded there is no partition") {
  PartitionScene scene;
  std::filesystem::remove_all(scene.dir.path());
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.problem() == "it cannot be recorded");
  CHECK(scene.tree.text() == scene.before);
  CHECK(scene.keeper->is_unfinished());
  std::filesystem::create_directories(scene.dir.path());
}

TEST_CASE("a damaged record: nothing is written, and it says why") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  scene.dir.write("partitions.json", "{\"version\"");
  scene.restart();
  scene.tree.writes = 0;
  scene.keep({});
  scene.keeper->check();
  CHECK(scene.tree.writes == 0);
  CHECK(scene.keeper->state().problem.find("nothing is written") != std::string::npos);
}

TEST_CASE("CPUs that may not be taken any more are given back") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3}), scene.of(200, {4, 5})});
  scene.keeper->restrict_to({2, 3});
  CHECK(scene.tree.isolated() == "2-3");
  CHECK(scene.tree.where(201) == kTwo);
}

TEST_CASE("nothing is made that cannot be recorded, however often it is tried") {
  PartitionScene scene;
  std::filesystem::remove_all(scene.dir.path());
  scene.keep({scene.of(100, {2, 3})});
  scene.keeper->check();
  CHECK(scene.problem() == "it cannot be recorded");
  CHECK(scene.tree.text() == scene.before);
  CHECK(scene.tree.where(101) == kOne);
  std::filesystem::create_directories(scene.dir.path());
  scene.keeper->check();
  CHECK(scene.problem().empty());
}

TEST_CASE("a partition is undone where nothing can be recorded") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3})});
  scene.kernel_threads.masks = {{"89 276", {4, 5}}};
  std::filesystem::remove_all(scene.dir.path());
  scene.keep({});
  CHECK(scene.tree.text() == scene.before);
  CHECK(scene.tree.where(101) == kOne);
  std::filesystem::create_directories(scene.dir.path());
}
