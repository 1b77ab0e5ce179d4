// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/drift.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using namespace ka::tests;

TEST_CASE("drift says which threads moved, by what, and which program is known to do that") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  std::vector<std::string> drifts;
  const auto subscription = scene.board().feed().subscribe(
      board::NotificationKind::kDrift, [&drifts](const board::Notification& drift) {
        drifts.push_back(drift.reason + ": " + drift.text);
      });
  scene.calls.own[111] = scene.machine;
  scene.line().check_drift();
  scene.node.process(812, 1, "numad", "/usr/bin/numad");
  scene.calls.own[111] = scene.machine;
  scene.calls.own[112] = {0};
  scene.line().check_drift();
  scene.node.end_process(812);
  scene.node.in_cgroup(100, "vms", "0-6");
  scene.calls.own[112] = policy::CpuSet::range(0, 6);
  scene.line().check_drift();
  for (const int tid : {100, 101, 111, 112}) scene.calls.own[tid] = {7};
  scene.line().cgroup_written((scene.node.cgroup() / "vms").string());
  CHECK(drifts ==
        std::vector<std::string>{
            "affinity: 1 thread had left its planned CPUs: vCPU 1 from CPU 4 to CPUs 0-7; by "
            "sched_setaffinity(2) of another program",
            "affinity: 2 threads had left their planned CPUs: vCPU 1 from CPU 4 to CPUs 0-7, vCPU "
            "2 from CPU 5 to CPU 0; by sched_setaffinity(2) of another program; known to do that: "
            "numad (pid 812)",
            "cpuset: 1 thread had left its planned CPUs: vCPU 2 from CPU 5 to CPUs 0-6; by a write "
            "to the cpuset of their cgroup",
            "cpuset: 4 threads had left their planned CPUs: emulator 100 from CPU 4 to CPU 7, "
            "iothread 101 from CPU 4 to CPU 7, vCPU 1 from CPU 4 to CPU 7 and 1 more; by a "
            "write to the cpuset of their cgroup"});
}

TEST_CASE("of a domain, drift may be a late call of libvirtd's") {
  LineScene scene;
  scene.boot_vm(100, 2);
  policy::ledger::PodSeen pod{.id = "s1", .vmm = policy::ProcessId{100, 0}, .domain = "vm1"};
  REQUIRE(scene.requests().submit({policy::ledger::Source::kLibvirt, pod}));
  REQUIRE(scene.container("s1", "app", {4}, true));
  std::string text;
  const auto subscription = scene.board().feed().subscribe(
      board::NotificationKind::kDrift,
      [&text](const board::Notification& drift) { text = drift.text; });
  scene.calls.own[111] = scene.machine;
  scene.line().check_drift();
  CHECK(
      text.ends_with("; by sched_setaffinity(2) of libvirtd, which carried out an earlier plan "
                     "late, or of another program"));
}

TEST_CASE("a helper that ended costs one run of the line, not one in each drift check") {
  LineScene scene;
  scene.boot_vm(100, 1);
  scene.node.process(500, 1, "helper", "/usr/bin/helper");
  for (const int pid : {100, 500}) scene.node.in_cgroup(pid, "kata_s", "0-7");
  scene.node.cgroup_procs("kata_s", "100\n500\n");
  REQUIRE(scene.add("s", 100));
  REQUIRE(scene.container("s", "c", {2, 3}, false));
  REQUIRE(scene.cpus(500) == "2-3");
  CHECK(scene.line().check_drift().planned == 0);
  scene.node.end_process(500);
  scene.node.cgroup_procs("kata_s", "100\n");
  CHECK(scene.line().check_drift().planned == 1);
  CHECK(scene.line().check_drift().planned == 0);
}
