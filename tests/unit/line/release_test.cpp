// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <stdexcept>

#include "affinity/line/line.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using tests::LineScene;

TEST_CASE("masks set before observe mode are restored on release") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  line::Options options = tests::at_home();
  options.observe = true;
  scene.line().configure(options);
  CHECK(scene.cpus(111) == "4");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.cpus(111) == "0-7");
  CHECK(scene.requests().reconcile("s1")->writes == 0);
}

TEST_CASE("release restores the mask a thread would have without us, until reconcile") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.boot_vm(200, 1);
  scene.calls.own[200] = {6, 7};
  scene.calls.own[210] = {6, 7};
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.container("s2", "app", {1}, false));
  CHECK(scene.cpus(210) == "1");
  scene.start();
  scene.line().adopt();
  scene.line().release_all();
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "0-7");
  CHECK(scene.cpus(210) == "6-7");
  scene.line().check_drift();
  scene.line().refresh("s1");
  CHECK(scene.cpus(111) == "0-7");
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.cpus(111) == "4");
}

TEST_CASE("other programs' changes to released threads are left alone, until reconcile") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.requests().release("s1"));
  scene.calls.own[111] = {2};
  CHECK(scene.line().refresh("s1").writes == 0);
  CHECK(scene.line().check_drift().writes == 0);
  CHECK(scene.board().counters().drift_found == 0);
  scene.start();
  scene.line().adopt();
  CHECK(scene.cpus(111) == "2");
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.cpus(111) == "4");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.cpus(111) == "0-7");
}

TEST_CASE("what a daemon that is killed was taking back is placed by the next one") {
  const bool is_all = GENERATE(false, true);
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.requests().release("s1"));
  int writes = 0;
  scene.calls.before_write = [&](int) {
    if (++writes == 2) throw std::runtime_error("killed");
  };
  if (is_all) {
    CHECK_THROWS(scene.line().reconcile_all());
  } else {
    CHECK_THROWS(scene.requests().reconcile("s1"));
  }
  scene.calls.before_write = nullptr;
  scene.start();
  scene.line().adopt();
  CHECK_FALSE(scene.line().node().view("s1")->released);
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.cpus(112) == "5");
  REQUIRE(scene.requests().release("s1"));
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "0-7");
}

TEST_CASE("a failed release is retried, except for a libvirt domain") {
  for (const bool is_domain : {false, true}) {
    LineScene scene;
    scene.boot_vm(100, 3);
    REQUIRE(scene.requests().submit(
        {policy::ledger::Source::kApi,
         policy::ledger::PodSeen{
             .id = "s1", .vmm = tests::process_id(100), .domain = is_domain ? "vm1" : ""}}));
    REQUIRE(scene.container("s1", "app", {4, 5}, true));
    scene.calls.set_faults[111] = {EBUSY, 1000};
    REQUIRE(scene.requests().release("s1"));
    CHECK(scene.cpus(111) == "4");
    scene.calls.set_faults.clear();
    scene.line().refresh("s1");
    CHECK(scene.cpus(111) == (is_domain ? "4" : "0-7"));
  }
}

TEST_CASE("a mask of ours that the kernel has cut to all of the cgroup is released too") {
  LineScene scene;
  scene.boot_pod("s1", 100, 3);
  scene.cpusets.make("pods/s1", {4, 5});
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.cpusets.make("pods/s1", {4});  // 5 has gone offline
  scene.line().refresh("s1");
  scene.calls.set_faults[112] = {EBUSY, 1000};
  REQUIRE(scene.requests().release("s1"));
  scene.calls.set_faults.clear();
  scene.line().check_drift();
  CHECK(scene.line().refresh("s1").writes == 0);
  scene.cpusets.make("pods/s1", {4, 5});
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "4-5");
}

TEST_CASE("a thread that was never placed is not written when nothing is to be placed") {
  line::Options off;
  off.enable = false;
  LineScene scene(8, off);
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.line().check_drift();
  CHECK(scene.calls.writes.empty());
}

TEST_CASE("threads released while a partition has their CPUs are done: they follow the cgroup") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.calls.cgroup_of = [](int tid) {
    return tid == 111 || tid == 112 ? policy::CpuSet{4, 5} : policy::CpuSet{0, 1, 2, 3, 6, 7};
  };
  scene.line().refresh("s1");
  scene.notified.clear();
  const auto outcome = scene.requests().release("s1");
  REQUIRE(outcome);
  CHECK(outcome->failed == 0);
  CHECK(outcome->planned == 1);
  CHECK(scene.cpus(111) == "4-5");
  CHECK(std::ranges::count(scene.notified, "unplaced") == 0);
  scene.calls.cgroup_of = nullptr;
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "0-7");
  scene.line().check_drift();
  CHECK(std::ranges::count(scene.notified, "drift") == 0);
}

TEST_CASE("enable = false and removal release too") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.boot_vm(200, 1);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "c", {6}, false));
  REQUIRE(scene.remove("s2"));
  CHECK(scene.cpus(210) == "0-7");
  line::Options off;
  off.enable = false;
  scene.line().configure(off);
  CHECK(scene.cpus(111) == "0-7");
}

TEST_CASE("a VM that outlives its pod gets no CPU of another pod back") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.boot_vm(200, 1);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "c", {6}, false));
  scene.line().handle({policy::ledger::Source::kNri, policy::ledger::PodGone{"s2"}});
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"s1"});
  CHECK(scene.cpus(210) == "0-3,6-7");
}

TEST_CASE("a thread whose own mask its cgroup cuts gets the rest of it when the cgroup does") {
  const bool is_all_of_cgroup = GENERATE(false, true);
  LineScene scene;
  scene.boot_pod("s1", 100, 3);
  for (const int tid : {100, 101, 110, 111, 112}) scene.calls.own[tid] = {2, 3, 4, 5};
  REQUIRE(scene.add("s1", 100));
  scene.cpusets.make("pods/s1", is_all_of_cgroup ? CpuSet{4, 5} : CpuSet{4, 5, 6});
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  CHECK(scene.cpus(111) == "4");
  REQUIRE(scene.requests().release("s1"));
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "4-5");
  scene.line().check_drift();
  scene.cpusets.make("pods/s1", CpuSet::range(0, 7));
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "2-5");
}

TEST_CASE("a thread whose own mask its cgroup no longer allows gets the cgroup's set") {
  LineScene scene;
  scene.boot_pod("s1", 100, 3);
  for (const int tid : {100, 101, 110, 111, 112}) scene.calls.own[tid] = {6, 7};
  REQUIRE(scene.add("s1", 100));
  scene.cpusets.make("pods/s1", {4, 5});
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  CHECK(scene.cpus(111) == "4");
  REQUIRE(scene.requests().release("s1"));
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "4-5");
  CHECK(scene.line().node().view("s1")->released);
  CHECK(scene.line().refresh("s1").writes == 0);
}

TEST_CASE("masks narrowed by the shim proxy are not taken as the original ones") {
  LineScene scene;
  scene.boot_vm(100, 3);
  // Born on the shared pool of that moment.
  for (const int tid : {100, 101, 110, 111, 112}) scene.calls.own[tid] = {2, 3};
  scene.line().handle({policy::ledger::Source::kProxy,
                       policy::ledger::PodSeen{.id = "s1",
                                               .vmm = tests::process_id(100),
                                               .original_cpus = policy::CpuSet::range(0, 6)}});
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  CHECK(scene.cpus(111) == "4");
  scene.start();
  scene.line().adopt();
  REQUIRE(scene.requests().release("s1"));
  for (const int tid : {100, 101, 110, 111, 112}) CHECK(scene.cpus(tid) == "0-6");
}

TEST_CASE("the shim proxy is placed, read and released with its sandbox") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.boot_vm(200, 1);
  scene.node.process(150, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-affinity-v2");
  scene.line().handle(
      {policy::ledger::Source::kProxy,
       policy::ledger::PodSeen{
           .id = "s1", .vmm = tests::process_id(100), .proxy = tests::process_id(150)}});
  REQUIRE(scene.container("s1", "app", {0, 1, 2}, false));
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "app", {2}, true));
  const auto role = [&](int tid) -> std::string {
    for (const auto& thread : scene.line().node().view("s1")->threads) {
      if (thread.facts.key.tid == tid) return std::string(policy::role_name(thread.facts.role));
    }
    return "unknown";
  };
  CHECK(role(150) == "shim");
  CHECK(scene.cpus(150) == scene.cpus(100));
  CHECK_FALSE(scene.calls.effective(150).contains(2));
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.cpus(150) == "0-7");
  // Another process that has its number is none of the sandbox's.
  scene.node.end_process(150);
  scene.node.process(150, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  scene.node.thread(150, 150, "containerd-shim", 1, 999999);
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(role(150) == "unknown");
}

TEST_CASE("a proxy that has the number of one that ended is left alone") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.node.process(150, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-affinity-v2");
  policy::ProcessId ended = tests::process_id(150);
  --ended.start_time;
  scene.line().handle(
      {policy::ledger::Source::kProxy,
       policy::ledger::PodSeen{.id = "s1", .vmm = tests::process_id(100), .proxy = ended}});
  REQUIRE(scene.container("s1", "app", {0, 1, 2}, false));
  CHECK(scene.cpus(100) == "0-2");
  CHECK(scene.cpus(150) == "0-7");
}

TEST_CASE("a shim proxy is identified when it reports itself by its number") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.node.process(150, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-affinity-v2");
  const auto reported = [&](int pid) {
    REQUIRE(scene.requests().submit({policy::ledger::Source::kProxy,
                                     policy::ledger::PodSeen{.id = "s" + std::to_string(pid),
                                                             .proxy = policy::ProcessId{pid, 0}}}));
    return scene.line().node().ledger().find("s" + std::to_string(pid))->proxy;
  };
  CHECK(reported(150) == tests::process_id(150));
  CHECK_FALSE(reported(100));  // a VMM
  CHECK_FALSE(reported(151));  // ended meanwhile
}
