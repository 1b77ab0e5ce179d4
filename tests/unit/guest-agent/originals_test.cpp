// SPDX-License-Identifier: Apache-2.0
// What a guest's interrupts, workqueues and kernel threads had before is what they have again; so
// are containers.
#include "guest-agent/agent/originals.hpp"

#include <cerrno>

#include "tests/catch.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"

using namespace ka;
using policy::GuestCpuSet;
using tests::spec_of;

namespace {

const std::string kId(64, 'a');
constexpr const char* kWorkqueues = "sys/devices/virtual/workqueue/cpumask";

struct Guest : tests::GuestScene {
  Guest() {
    cpus({0, 1, 2, 3});
    cgroup(kId);
    files.write("proc/irq/24/smp_affinity_list", "0-3\n");
    files.write("proc/irq/25/smp_affinity_list", "2\n");
    files.write("proc/irq/26/smp_affinity_list", "0-1\n");
    files.write("proc/irq/default_smp_affinity", "e\n");
    files.write(kWorkqueues, "6\n");
    thread(20, 77);
    threads.cpus[20] = {2};
  }

  void thread(int pid, int start) const {
    const std::string base = "proc/" + std::to_string(pid);
    files.write(base + "/comm", "kworker/u8:0\n");
    files.write(base + "/stat",
                std::to_string(pid) +
                    " (kworker/u8:0) S 2 0 0 0 -1 2097216 0 0 0 0 0 0 0 0 20 0 1 0 " +
                    std::to_string(start) + " 0\n");
  }
  std::string masks() const {
    std::string text;
    for (const char* irq : {"24", "25", "26"}) {
      text += read("proc/irq/" + std::string(irq) + "/smp_affinity_list") + ' ';
    }
    return text + read("proc/irq/default_smp_affinity") + ' ' + read(kWorkqueues);
  }
};

void finish(agent::Agent& agent) {
  while (agent.run_background()) {
  }
}

const policy::GuestSpec kRelease{.move_interrupts = false, .release = true};

}  // namespace

TEST_CASE("masks that were narrower are given back as they were, also by a later agent") {
  Guest guest;
  agent::Agent agent(guest.roots(), guest.threads);
  agent.apply(spec_of(4, {2, 3}, kId));
  finish(agent);
  CHECK(guest.masks() == "0-1 0-1 0-1 3 3");
  CHECK(guest.threads.cpus[20] == GuestCpuSet{0, 1});
  SECTION("by the agent that changed them") {
    agent.apply(kRelease);
    finish(agent);
  }
  SECTION("after other vCPUs were set apart, too") {
    agent.apply(spec_of(4, {1, 2, 3}, kId));
    finish(agent);
    CHECK(guest.masks() == "0 0 0 1 1");
    agent.apply(kRelease);
    finish(agent);
  }
  SECTION("by one that comes after it was killed") {
    agent::Agent next(guest.roots(), guest.threads);
    next.apply(kRelease);
    finish(next);
  }
  SECTION("by one that comes after it was killed while it set other vCPUs apart") {
    agent.apply(spec_of(4, {1, 2, 3}, kId));
    REQUIRE(agent.run_background());
    guest.files.write("proc/irq/25/smp_affinity_list", "0-1\n");  // as if it had not come so far
    REQUIRE(guest.threads.cpus[20] == GuestCpuSet{0, 1});
    agent::Agent next(guest.roots(), guest.threads);
    if (GENERATE(false, true)) {
      next.apply(spec_of(4, {1, 2, 3}, kId));
      finish(next);
      CHECK(guest.masks() == "0 0 0 1 1");
      CHECK(guest.threads.cpus[20] == GuestCpuSet{0});
    }
    next.apply(kRelease);
    finish(next);
  }
  CHECK(guest.masks() == "0-3 2 0-1 e 6");
  CHECK(guest.threads.cpus[20] == GuestCpuSet{2});
  CHECK_FALSE(std::filesystem::exists(guest.path("run/kata-affinity/masks")));
}

TEST_CASE("a mask that an agent recorded and gave back is not given back again") {
  tests::GuestScene guest;
  guest.cpus({0, 1, 2, 3});
  guest.cgroup(kId);
  guest.files.write("proc/irq/24/smp_affinity_list", "0-3\n");
  guest.files.write("run/kata-affinity/masks", "interrupt 24:1\n");
  {
    agent::Agent killed(guest.roots(), guest.threads);
    killed.apply(spec_of(4, {2, 3}, kId));
    finish(killed);
  }
  agent::Agent next(guest.roots(), guest.threads);
  next.apply(kRelease);
  finish(next);
  CHECK(guest.read("proc/irq/24/smp_affinity_list") == "0-3");
}

TEST_CASE("a cgroup that the agent made for kata-agent is given back all CPUs") {
  tests::GuestScene guest;
  guest.cpus({0, 1, 2, 3});
  guest.cgroup(kId);
  guest.files.write("proc/50/comm", "kata-agent\n");
  guest.files.write("proc/50/cgroup", "0::/\n");
  agent::Agent agent(guest.roots(), guest.threads);
  agent.apply(spec_of(4, {2, 3}, kId));
  guest.cgroup("kata-affinity");  // as the kernel makes its files when the agent makes it
  finish(agent);
  CHECK(guest.read("cgroup/kata-affinity/cpuset.cpus") == "0-1");
  CHECK(guest.read("cgroup/kata-affinity/cgroup.procs") == "50");
  agent.apply(kRelease);
  finish(agent);
  CHECK(guest.read("cgroup/kata-affinity/cpuset.cpus").empty());
}

TEST_CASE("what others have written meanwhile stays, and a thread's number may be another's") {
  Guest guest;
  agent::Agent agent(guest.roots(), guest.threads);
  agent.apply(spec_of(4, {2, 3}, kId));
  finish(agent);
  guest.files.write("proc/irq/25/smp_affinity_list", "3\n");
  guest.thread(20, 78);
  agent.apply(kRelease);
  finish(agent);
  CHECK(guest.masks() == "0-3 3 0-1 e 6");
  CHECK(guest.threads.cpus[20] == GuestCpuSet::range(0, 3));
}

TEST_CASE("what a killed agent has placed is given back by the next one") {
  using Cgroups = tests::GuestScene::Cgroups;
  const auto kind = GENERATE(Cgroups::kV2, Cgroups::kV1, Cgroups::kOther);
  tests::GuestScene scene(kind);
  scene.cpus({0, 1, 2, 3});
  scene.cgroup(kId);
  scene.process(70, kId, "app");
  const auto placed = [&] {
    if (kind != Cgroups::kOther) return scene.read("cgroup/" + kId + "/cpuset.cpus");
    return policy::format_list(scene.threads.cpus[70]);
  };
  {
    agent::Agent killed(scene.roots(), scene.threads);
    killed.apply(spec_of(4, {2, 3}, kId));
    finish(killed);
  }
  REQUIRE(placed() == "2-3");
  agent::Agent next(scene.roots(), scene.threads);
  next.apply({.move_interrupts = false, .release = true});
  finish(next);
  CHECK(placed() == (kind == Cgroups::kV2 ? "" : "0-3"));
  CHECK_FALSE(std::filesystem::exists(scene.path("run/kata-affinity/containers")));
}

TEST_CASE("a damaged record of masks is as good as its lines") {
  const tests::TempDir dir;
  dir.write("masks", "x\n:\ninterrupt 1:7-2\ninterrupt 2:\ninterrupt 3:1\ninterrupt 4:9");
  agent::Originals originals(dir.path() / "masks");
  originals.load();
  const GuestCpuSet online = GuestCpuSet::range(0, 3);
  CHECK(originals.find("interrupt 1", online) == online);
  CHECK(originals.find("interrupt 2", online) == online);
  CHECK(originals.find("interrupt 3", online) == GuestCpuSet{1});
  CHECK(originals.find("interrupt 4", online) == online);
}
