// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "guest-agent/agent/hierarchy.hpp"
#include "guest-agent/agent/tree_watch.hpp"
#include "tests/catch.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"

using namespace ka;
using policy::GuestCpuSet;
using policy::GuestProblem;
using tests::GuestScene;
using tests::spec_of;
using Cgroups = GuestScene::Cgroups;

namespace {

const std::string kId(64, 'a');
const std::string kOther(64, 'b');

const policy::GuestContainerState& state(const policy::GuestReport& report, const std::string& id) {
  return *std::ranges::find(report.containers, id, &policy::GuestContainerState::id);
}

void do_all_of(agent::Agent& agent) {
  while (agent.run_background()) {
  }
}

}  // namespace

TEST_CASE("guest CPUs are identified by APIC id, whatever their numbers") {
  GuestScene scene;
  scene.cpus({0, 3, 2, 1});  // a kernel before 6.9, after Kata plugged three from above
  agent::Agent agent(scene.roots(), scene.threads);
  const auto& cpus = agent.report().cpus;
  REQUIRE(cpus.size() == 4);
  CHECK(cpus[1].hardware_id == 3);
  CHECK(cpus[3].hardware_id == 1);

  scene.cgroup("kubepods/" + kId);
  scene.process(100, "kubepods/" + kId, "app");
  const auto& report = agent.apply(spec_of(4, {1, 2}, kId));
  CHECK(scene.read("cgroup/kubepods/" + kId + "/cpuset.cpus") == "2-3");
  CHECK(report.common == GuestCpuSet{0, 1});
}

TEST_CASE("an offline CPU keeps its APIC id, an unplugged one does not") {
  GuestScene scene;
  scene.cpus({0, 1, 2});
  agent::Agent agent(scene.roots(), scene.threads);
  scene.files.write("proc/cpuinfo", "processor\t: 0\napicid\t\t: 0\n\n");
  scene.files.write("sys/devices/system/cpu/cpu1/online", "0\n");
  std::filesystem::remove_all(scene.path("sys/devices/system/cpu/cpu2"));
  agent.cpus_changed();
  const auto& cpus = agent.report().cpus;
  REQUIRE(cpus.size() == 2);
  CHECK_FALSE(cpus[1].online);
  CHECK(cpus[1].hardware_id == 1);
  scene.files.write("sys/devices/system/cpu/cpu2/online", "1\n");
  agent.cpus_changed();
  CHECK_FALSE(agent.report().cpus[2].hardware_id);
}

TEST_CASE("the cpuset controller is enabled down to a container, also under systemd") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  const std::string cgroup = "kubepods.slice/pod.slice/cri-containerd-" + kId + ".scope";
  scene.cgroup(cgroup);
  scene.files.write("cgroup/kubepods.slice/cpuset.cpus", "0\n");
  agent::Agent agent(scene.roots(), scene.threads);
  const auto& report = agent.apply(spec_of(4, {2}, kId));
  CHECK(scene.read("cgroup/cgroup.subtree_control") == "+cpuset");
  CHECK(scene.read("cgroup/kubepods.slice/pod.slice/cgroup.subtree_control") == "+cpuset");
  CHECK(scene.read("cgroup/kubepods.slice/cpuset.cpus") == "0,2");
  CHECK(scene.read("cgroup/" + cgroup + "/cpuset.cpus") == "2");
  CHECK(state(report, kId).method == policy::GuestMethod::kCgroupV2);
}

TEST_CASE("an unreported container is kept off vCPUs of others; other cgroups are left alone") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("kubepods/" + kId);
  scene.cgroup("kubepods/" + kOther);
  scene.cgroup("system.slice/sshd.service");
  agent::Agent agent(scene.roots(), scene.threads);
  agent.apply(spec_of(4, {2, 3}, kId));
  CHECK(scene.read("cgroup/kubepods/" + kOther + "/cpuset.cpus") == "0-1");
  CHECK(scene.read("cgroup/system.slice/sshd.service/cpuset.cpus").empty());
}

TEST_CASE("a later container is placed when its cgroup appears") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("kubepods");
  agent::Agent agent(scene.roots(), scene.threads);
  CHECK(state(agent.apply(spec_of(4, {2}, kId)), kId).problem == GuestProblem::kNotFound);
  const auto generation = agent.report().generation;
  const auto places = agent.places_to_watch();
  CHECK(std::ranges::find(places, scene.path("cgroup/kubepods")) != places.end());
  scene.cgroup("kubepods/" + kId);
  agent.cgroups_changed();
  CHECK(agent.report().generation > generation);
  CHECK(scene.read("cgroup/kubepods/" + kId + "/cpuset.cpus") == "2");
}

TEST_CASE("ids are matched as a whole: a longer name with the same end is another container") {
  CHECK(agent::names_container("cri-containerd-ab.scope", "ab"));
  CHECK(agent::names_container("ab", "ab"));
  CHECK_FALSE(agent::names_container("cri-containerd-xab.scope", "ab"));
  CHECK_FALSE(agent::names_container("-xab", "ab"));
  CHECK(agent::is_container_name(kId));
  CHECK(agent::is_container_name("crio-" + kId + ".scope"));
  CHECK_FALSE(agent::is_container_name("a" + kId));
}

TEST_CASE("v1: ancestors get the CPUs of a container, and descendants follow") {
  GuestScene scene(Cgroups::kV1);
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("kubepods/" + kId + "/inner");
  scene.files.write("cgroup/kubepods/cpuset.cpus", "0\n");
  scene.files.write("cgroup/kubepods/" + kId + "/cpuset.cpus", "0\n");
  scene.files.write("cgroup/kubepods/" + kId + "/inner/cpuset.cpus", "0\n");
  agent::Agent agent(scene.roots(), scene.threads);
  const auto& report = agent.apply(spec_of(4, {2, 3}, kId));
  CHECK(scene.read("cgroup/kubepods/cpuset.cpus") == "0,2-3");
  CHECK(scene.read("cgroup/kubepods/" + kId + "/cpuset.cpus") == "2-3");
  CHECK(scene.read("cgroup/kubepods/" + kId + "/inner/cpuset.cpus") == "2-3");
  CHECK(scene.read("cgroup/kubepods/" + kId + "/cpuset.mems") == "0");
  CHECK(state(report, kId).method == policy::GuestMethod::kCgroupV1);
}

TEST_CASE("v1: a known path is not walked again until something changes") {
  GuestScene scene(Cgroups::kV1);
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("kubepods/" + kId);
  agent::Agent agent(scene.roots(), scene.threads);
  agent.apply(spec_of(4, {2}, kId));
  scene.files.write("cgroup/kubepods/cpuset.cpus", "0\n");
  agent.apply(spec_of(4, {3}, kId));
  CHECK(scene.read("cgroup/kubepods/" + kId + "/cpuset.cpus") == "3");
  CHECK(scene.read("cgroup/kubepods/cpuset.cpus") == "0");
  agent.cgroups_changed();
  CHECK(scene.read("cgroup/kubepods/cpuset.cpus") == "0,3");

  SECTION("descendants follow nevertheless") {
    scene.cgroup("kubepods/" + kId + "/inner");
    agent.cgroups_changed();
    agent.apply(spec_of(4, {1, 2}, kId));
    CHECK(scene.read("cgroup/kubepods/" + kId + "/inner/cpuset.cpus") == "1-2");
  }
}

TEST_CASE("an unchanged container is processed again only after a change") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  for (const std::string& id : {kId, kOther}) scene.cgroup("kubepods/" + id);
  scene.process(100, "kubepods/" + kOther, "app");
  auto spec = spec_of(4, {1}, kId);
  spec.containers.push_back({.id = kOther, .name = "b", .hardware_ids = {2}, .dedicated = true});
  agent::Agent agent(scene.roots(), scene.threads);
  scene.threads.cpus[100] = {2};
  CHECK(state(agent.apply(spec), kOther).problem == GuestProblem::kNone);

  scene.threads.cpus[100] = {3};
  spec.containers[0].hardware_ids = {0, 1};
  CHECK(state(agent.apply(spec), kOther).problem == GuestProblem::kNone);

  SECTION("cgroups") { agent.cgroups_changed(); }
  SECTION("CPUs") {
    scene.cpus({0, 1, 2});
    std::filesystem::remove_all(scene.path("sys/devices/system/cpu/cpu3"));
    agent.cpus_changed();
  }
  SECTION("its request") {
    spec.containers[1].hardware_ids = {1, 2};
    agent.apply(spec);
  }
  CHECK(state(agent.report(), kOther).problem == GuestProblem::kThreadsOutside);
}

TEST_CASE("the agent's own writes are not changes") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("kubepods/" + kId);
  scene.cgroup("system.slice/kata-agent.service");
  scene.process(50, "system.slice/kata-agent.service", "kata-agent");
  scene.files.write("proc/50/cgroup", "0::/system.slice/kata-agent.service\n");
  for (const std::string at : {"", "kubepods/", "system.slice/"}) {
    scene.files.write("cgroup/" + at + "cgroup.subtree_control", "cpuset\n");
  }
  agent::Agent agent(scene.roots(), scene.threads);
  agent::TreeWatch watch;
  REQUIRE(watch.open());
  agent.apply(spec_of(4, {2}, kId));
  do_all_of(agent);
  watch.watch_only(agent.places_to_watch());

  agent.apply(spec_of(4, {3}, kId));
  do_all_of(agent);
  const auto own = watch.drain();
  CHECK_FALSE(own->changed);
  CHECK(own->cpusets.size() == 3);
  CHECK(agent.has_given(own->cpusets));

  const std::string whose =
      GENERATE("kubepods/" + kId, "system.slice/kata-agent.service", "system.slice", "kubepods");
  scene.files.write("cgroup/" + whose + "/cpuset.cpus", "0-1\n");
  CHECK_FALSE(agent.has_given(watch.drain()->cpusets));
}

TEST_CASE("without cpusets every thread is placed, also later ones") {
  GuestScene scene(Cgroups::kOther);
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("pod/" + kId);
  scene.process(100, "pod/" + kId, "app");
  scene.process(101, "pod/" + kId, "helper");
  scene.process(102, "pod/" + kId, "late");
  scene.threads.cpus.erase(102);
  scene.threads.appears_on_next = 102;
  agent::Agent agent(scene.roots(), scene.threads);
  const auto& report = agent.apply(spec_of(4, {2, 3}, kId));
  for (const int tid : {100, 101, 102}) CHECK(scene.threads.cpus[tid] == GuestCpuSet{2, 3});
  CHECK(state(report, kId).method == policy::GuestMethod::kAffinity);
  CHECK(state(report, kId).actual == GuestCpuSet{2, 3});
  CHECK(agent.needs_polling());

  SECTION("a thread that narrowed itself stays, one that left is moved back") {
    scene.threads.cpus[100] = GuestCpuSet{3};
    scene.threads.cpus[101] = GuestCpuSet{0};
    agent.poll();
    CHECK(scene.threads.cpus[100] == GuestCpuSet{3});
    CHECK(scene.threads.cpus[101] == GuestCpuSet{2, 3});
  }
  SECTION("they follow when the container gets more CPUs") {
    agent.apply(spec_of(4, {1, 2, 3}, kId));
    CHECK(scene.threads.cpus[101] == GuestCpuSet{1, 2, 3});
  }
}

TEST_CASE("a vCPU that is not online is missing, and a container's only one is not guessed") {
  GuestScene scene;
  scene.cpus({0, 1});
  scene.cgroup(kId);
  agent::Agent agent(scene.roots(), scene.threads);
  CHECK(state(agent.apply(spec_of(4, {1, 3}, kId)), kId).problem == GuestProblem::kVcpuMissing);
  CHECK(scene.read("cgroup/" + kId + "/cpuset.cpus") == "1");
  CHECK(state(agent.apply(spec_of(4, {2, 3}, kId)), kId).problem == GuestProblem::kNoVcpu);
  CHECK(scene.read("cgroup/" + kId + "/cpuset.cpus") == "0-1");
}

TEST_CASE("interrupts, kernel threads and kata-agent are kept off reserved vCPUs") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  scene.cgroup(kId);
  scene.cgroup("system.slice/kata-agent.service");
  scene.files.write("proc/irq/24/smp_affinity_list", "0-3\n");
  scene.files.write("proc/irq/default_smp_affinity", "f\n");
  const auto task = [&scene](int pid, const std::string& comm, unsigned long flags) {
    const std::string base = "proc/" + std::to_string(pid);
    scene.files.write(base + "/comm", comm + '\n');
    scene.files.write(base + "/stat", std::to_string(pid) + " (" + comm + ") S 2 0 0 0 -1 " +
                                          std::to_string(flags) + " 0 0\n");
    scene.files.write(base + "/cgroup", "0::/system.slice/kata-agent.service\n");
    scene.threads.cpus[pid] = GuestCpuSet::range(0, 3);
  };
  task(20, "kworker/u8:0", 0x00200040);
  task(21, "ksoftirqd/2", 0x04200040);
  task(22, "kata-agent", 0x00400100);
  task(23, "kata-agent", 0x00400100);  // a container's program that calls itself so
  scene.files.write("proc/23/cgroup", "0::/" + kId + "\n");
  agent::Agent agent(scene.roots(), scene.threads);
  const auto& report = agent.apply(spec_of(4, {2, 3}, kId));
  const auto answered = report.generation;
  do_all_of(agent);
  CHECK(report.generation > answered);
  CHECK(scene.read("proc/irq/24/smp_affinity_list") == "0-1");
  CHECK(scene.read("proc/irq/default_smp_affinity") == "3");
  CHECK(scene.threads.cpus[20] == GuestCpuSet{0, 1});
  CHECK(scene.threads.cpus[21] == GuestCpuSet::range(0, 3));
  CHECK(scene.threads.cpus[22] == GuestCpuSet::range(0, 3));
  CHECK(scene.read("cgroup/system.slice/kata-agent.service/cpuset.cpus") == "0-1");
  CHECK(scene.read("cgroup/" + kId + "/cpuset.cpus") == "2-3");
  CHECK(report.interrupts_moved == 1);
  CHECK(report.kernel_threads_moved == 1);
  CHECK(report.services_moved);

  SECTION("kata-agent also when systemd removes the controller, or restarts it") {
    const std::string slice = "cgroup/system.slice";
    scene.files.write(slice + "/cgroup.subtree_control", "memory pids\n");
    scene.files.write(slice + "/kata-agent.service/cpuset.cpus", "\n");
    agent.cgroups_changed();
    do_all_of(agent);
    CHECK(scene.read(slice + "/cgroup.subtree_control") == "+cpuset");
    CHECK(scene.read(slice + "/kata-agent.service/cpuset.cpus") == "0-1");
    CHECK(agent.report().services_moved);

    std::filesystem::remove_all(scene.path(slice + "/kata-agent.service"));
    agent.cgroups_changed();
    do_all_of(agent);
    CHECK(agent.report().services_moved);
  }

  SECTION("and are released by the agent after one that was killed") {
    agent::Agent next(scene.roots(), scene.threads);
    next.apply({.move_interrupts = false, .release = true});
    do_all_of(next);
    CHECK(scene.read("proc/irq/24/smp_affinity_list") == "0-3");
    CHECK(scene.threads.cpus[20] == GuestCpuSet::range(0, 3));
    CHECK(scene.read("cgroup/system.slice/kata-agent.service/cpuset.cpus").empty());

    scene.files.write("proc/irq/24/smp_affinity_list", "1\n");  // and then it is others'
    agent::Agent third(scene.roots(), scene.threads);
    third.apply({.move_interrupts = false, .release = true});
    do_all_of(third);
    CHECK(scene.read("proc/irq/24/smp_affinity_list") == "1");
  }

  SECTION("and are released") {
    agent.apply({.move_interrupts = false, .release = true});
    do_all_of(agent);
    CHECK(scene.read("proc/irq/24/smp_affinity_list") == "0-3");
    CHECK(scene.threads.cpus[20] == GuestCpuSet::range(0, 3));
    CHECK(scene.read("cgroup/" + kId + "/cpuset.cpus").empty());

    scene.cpus({0, 1, 2, 3, 4});  // and nothing keeps them off what is plugged later
    agent.cpus_changed();
    do_all_of(agent);
    CHECK(scene.read("proc/irq/24/smp_affinity_list") == "0-4");
    CHECK(scene.threads.cpus[20] == GuestCpuSet::range(0, 4));
    CHECK(scene.read("cgroup/system.slice/kata-agent.service/cpuset.cpus").empty());
    CHECK(scene.read("cgroup/" + kId + "/cpuset.cpus").empty());
  }
}

TEST_CASE("what systemd runs in a guest is kept off reserved vCPUs") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("kubepods/" + kId);
  for (const std::string slice : {"init.scope", "system.slice/sshd.service", "user.slice"}) {
    scene.cgroup(slice);
  }
  scene.cgroup("machine.slice");
  scene.process(60, "system.slice/sshd.service", "sshd");
  agent::Agent agent(scene.roots(), scene.threads);
  const auto& report = agent.apply(spec_of(4, {2, 3}, kId));
  do_all_of(agent);
  const auto slices = [&scene] {
    std::vector<std::string> cpus;
    for (const std::string slice : {"init.scope", "system.slice", "user.slice"}) {
      cpus.push_back(scene.read("cgroup/" + slice + "/cpuset.cpus"));
    }
    return cpus;
  };
  CHECK(slices() == std::vector<std::string>(3, "0-1"));
  CHECK(scene.read("cgroup/system.slice/sshd.service/cpuset.cpus").empty());
  CHECK(scene.read("cgroup/machine.slice/cpuset.cpus").empty());
  CHECK(report.services_moved);

  SECTION("also after another program wrote") {
    scene.files.write("cgroup/user.slice/cpuset.cpus", "0-3\n");
    agent.cgroups_changed();
    do_all_of(agent);
    CHECK(slices() == std::vector<std::string>(3, "0-1"));
  }
  SECTION("but for those beside a container, which needs its own CPUs") {
    scene.cgroup("system.slice/" + kOther);
    agent.cgroups_changed();
    do_all_of(agent);
    CHECK(slices() == std::vector<std::string>{"0-1", "0-3", "0-1"});
  }
  SECTION("until they are released") {
    agent.apply({.move_interrupts = false, .release = true});
    do_all_of(agent);
    CHECK(slices() == std::vector<std::string>(3));
    scene.files.write("cgroup/user.slice/cpuset.cpus", "1\n");  // and then they are others'
    scene.cpus({0, 1, 2, 3, 4});
    agent.cpus_changed();
    do_all_of(agent);
    CHECK(slices() == std::vector<std::string>{"", "", "1"});
  }
}

TEST_CASE("a slice that has containers from the start is left alone") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  scene.cgroup("system.slice/" + kId);
  agent::Agent agent(scene.roots(), scene.threads);
  agent.apply(spec_of(4, {2, 3}, kId));
  do_all_of(agent);
  CHECK(scene.read("cgroup/system.slice/cpuset.cpus").empty());
  CHECK(scene.read("cgroup/system.slice/" + kId + "/cpuset.cpus") == "2-3");
}

TEST_CASE(
    "kernel threads are placed a few at a time, and in the end all where the last plan wants "
    "them") {
  GuestScene scene;
  scene.cpus({0, 1, 2, 3});
  scene.cgroup(kId);
  constexpr int kFirst = 5'000'020, kLast = 5'000'060;  // no process of this test's can have them
  for (int pid = kFirst; pid <= kLast; ++pid) {
    const std::string base = "proc/" + std::to_string(pid);
    scene.files.write(base + "/comm", "kworker\n");
    scene.files.write(base + "/stat", "1 (kworker) S 2 0 0 0 -1 2097216 0 0\n");
    scene.threads.cpus[pid] = GuestCpuSet::range(0, 3);
  }
  agent::Agent agent(scene.roots(), scene.threads);
  agent.apply(spec_of(4, {1, 2, 3}, kId));
  const auto is_placed = [&] { return scene.threads.cpus[kFirst] == GuestCpuSet{0}; };
  while (!is_placed()) REQUIRE(agent.run_background());
  CHECK(scene.threads.cpus[kLast] == GuestCpuSet::range(0, 3));

  agent.apply(spec_of(4, {2, 3}, kId));  // while the others are still to be placed
  REQUIRE(agent.run_background());
  agent.apply(spec_of(4, {3}, kId));
  do_all_of(agent);
  for (int pid = kFirst; pid <= kLast; ++pid) {
    CHECK(scene.threads.cpus[pid] == GuestCpuSet::range(0, 2));
  }
  CHECK(agent.report().kernel_threads_moved == kLast - kFirst + 1);
}

TEST_CASE("a CFS quota is removed, and restored") {
  GuestScene scene;
  scene.cpus({0, 1});
  scene.cgroup(kId);
  scene.files.write("cgroup/" + kId + "/cpu.max", "200000 100000\n");
  agent::Agent agent(scene.roots(), scene.threads);
  auto spec = spec_of(2, {1}, kId);
  spec.containers[0].lift_quota = true;
  CHECK(state(agent.apply(spec), kId).quota_lifted);
  CHECK(scene.read("cgroup/" + kId + "/cpu.max") == "max 100000");
  agent.cgroups_changed();
  SECTION("when the request ends") {
    spec.containers[0].lift_quota = false;
    CHECK_FALSE(state(agent.apply(spec), kId).quota_lifted);
  }
  SECTION("when the host no longer names the container") {
    spec.containers.clear();
    agent.apply(spec);
  }
  SECTION("on release") { agent.apply({.move_interrupts = false, .release = true}); }
  SECTION("by one that comes after it was killed") {
    agent::Agent next(scene.roots(), scene.threads);
    if (GENERATE(false, true)) CHECK(state(next.apply(spec), kId).quota_lifted);
    next.apply({.move_interrupts = false, .release = true});
  }
  CHECK(scene.read("cgroup/" + kId + "/cpu.max") == "200000 100000");
}

TEST_CASE("a workload can read where it runs") {
  GuestScene scene;
  scene.cpus({0, 3});
  agent::Agent agent(scene.roots(), scene.threads);
  auto spec = spec_of(4, {3}, kId);
  spec.containers[0].name = "a\"b";
  agent.apply(spec);
  agent.run_background();
  CHECK(
      scene.read("run/kata-affinity/cpus.json") ==
      R"({"version":1,"common":"0","cpus":[)"
      R"({"cpu":0,"apic_id":0,"online":true,"vcpu":0,"host_cpus":"0","host_nodes":"0","dedicated":false},)"
      R"({"cpu":1,"apic_id":3,"online":true,"vcpu":3,"host_cpus":"3","host_nodes":"0","dedicated":true}],)"
      R"("containers":[{"id":")" +
          kId + R"(","name":"a\"b","cpus":"1","dedicated":true}]})");
}

TEST_CASE("a directory not watched before is scanned once more") {
  tests::TempDir files;
  const auto pods = files.path() / "pods", app = pods / "app";
  std::filesystem::create_directories(app);
  agent::TreeWatch watch;
  REQUIRE(watch.open());
  CHECK(watch.watch_only({pods}));
  CHECK_FALSE(watch.watch_only({pods}));
  CHECK(watch.watch_only({pods, app}));
  CHECK_FALSE(watch.watch_only({app}));

  std::filesystem::remove(app);
  std::filesystem::create_directory(app);
  CHECK(watch.watch_only({app}));  // it is another one
}
