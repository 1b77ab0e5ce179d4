// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/line.hpp"

#include "affinity/registry/admission.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "policy/facts/limits.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using base::ErrorCode;
using policy::CpuSet;
using tests::LineScene;

TEST_CASE("an exclusive container's vCPUs get its CPUs, and other threads avoid them") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "shared", {0, 1}, false));
  const auto outcome = scene.container("s1", "app", {4, 5}, true);
  REQUIRE(outcome);
  CHECK(outcome->planned == 1);
  CHECK(scene.cpus(110) == "0-1");
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.cpus(112) == "5");
  CHECK(scene.cpus(100) == "0-1");
  CHECK(scene.cpus(101) == "0-1");
}

TEST_CASE("a repeated event and a second run write nothing") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.calls.writes.clear();
  CHECK(scene.container("s1", "app", {4, 5}, true)->planned == 0);
  CHECK(scene.requests().reconcile("s1")->writes == 0);
  CHECK(scene.line().reconcile_all().writes == 0);
  CHECK(scene.line().check_drift().planned == 0);
  CHECK(scene.calls.writes.empty());
}

TEST_CASE("a container's event plans one sandbox, unless owners of CPUs change") {
  LineScene scene(64);
  for (int i = 0; i < 20; ++i) {
    scene.boot_vm(1000 + 100 * i, 2);
    REQUIRE(scene.add("s" + std::to_string(i), 1000 + 100 * i));
    REQUIRE(scene.container("s" + std::to_string(i), "c", {0, 1}, false));
  }
  CHECK(scene.container("s3", "c", {0, 1, 2}, false)->planned == 1);
  CHECK(scene.container("s4", "c", {40, 41}, true)->planned == 1);
  CHECK(scene.container("s5", "c", {1}, true)->planned == 19);
  CHECK(scene.cpus(1000) == "0");
}

TEST_CASE("balanced spreads floating vCPUs when neighbours come and go") {
  line::Options options = tests::at_home();
  options.settings.vcpu_pinning = policy::plan::VcpuPinning::kBalanced;
  LineScene scene(4, options);
  for (int i = 0; i < 3; ++i) {
    const std::string id = "s" + std::to_string(i);
    scene.boot_vm(1000 + 100 * i, 2);
    REQUIRE(scene.add(id, 1000 + 100 * i));
    REQUIRE(scene.container(id, "c", i == 1 ? policy::CpuSet{0, 1} : policy::CpuSet{0, 1, 2, 3},
                            false));
  }
  // s1 has no choice, s0 and s2 have CPUs 2 and 3 between them.
  CHECK(scene.cpus(1010) + scene.cpus(1011) == "23");
  CHECK(scene.cpus(1110) + scene.cpus(1111) == "01");
  REQUIRE(scene.remove("s1"));
  std::set<std::string> used;
  for (const int tid : {1010, 1011, 1210, 1211}) used.insert(scene.cpus(tid));
  CHECK(used == std::set<std::string>{"0", "1", "2", "3"});
  const auto again = scene.line().reconcile_all();
  CHECK(again.writes == 0);
}

TEST_CASE("two sandboxes swap their CPUs and never share one") {
  LineScene scene;
  scene.boot_two(3);
  REQUIRE(scene.container("a", "c", {2, 3}, true));
  REQUIRE(scene.container("b", "c", {4, 5}, true));
  bool let_in = false;
  scene.calls.after_write = [&](int tid) {
    const auto foreign = scene.line().node().ledger().exclusive_to_others(tid < 200 ? "a" : "b");
    let_in |= scene.calls.effective(tid).intersects(foreign);
  };
  REQUIRE(scene.container("a", "c", {4, 5}, true));
  REQUIRE(scene.container("b", "c", {2, 3}, true));
  CHECK_FALSE(let_in);
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.cpus(112) == "5");
  CHECK(scene.cpus(211) == "2");
  CHECK(scene.cpus(212) == "3");
}

TEST_CASE("hotplugged vCPUs are placed at the next observation") {
  LineScene scene;
  scene.boot_vm(100, 1);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.plug(100, 3);
  scene.plug(100, 2);
  scene.line().refresh("s1");
  CHECK(scene.cpus(110) == "4");  // floats where the sandbox has no other CPU
  CHECK(scene.cpus(112) == "4");
  CHECK(scene.cpus(113) == "5");
  scene.node.end_thread(100, 113);
  scene.line().check_drift();
  CHECK(scene.line().node().view("s1")->vcpus.size() == 2);
}

TEST_CASE("drift is found, repaired and counted") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.calls.own[111] = scene.machine;
  CHECK(scene.line().check_drift().writes == 1);
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.board().counters().drift_found == 1);
  CHECK(scene.board().counters().drift_repaired == 1);
  CHECK(std::ranges::count(scene.notified, "drift") == 1);
}

TEST_CASE("drift right after an event is counted too") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.calls.own[111] = scene.machine;
  CHECK(scene.line().refresh("s1").writes == 1);
  CHECK(scene.board().counters().drift_found == 1);
}

TEST_CASE("a monitor's stale report of an unplugged vCPU is not a contradiction") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  vmm::MonitorFacts facts{.source = "qmp", .vcpus = {}, .iothreads = {}};
  for (const int i : {0, 1, 2}) facts.vcpus.push_back({{.index = i, .core = i}, 110 + i});
  scene.line().set_monitor_facts("s1", facts);
  REQUIRE(scene.line().node().view("s1")->conflicts.empty());
  scene.node.end_thread(100, 112);
  scene.line().refresh("s1");
  CHECK(scene.line().node().view("s1")->vcpus.size() == 2);
  CHECK(scene.line().node().view("s1")->conflicts.empty());
  facts.vcpus.push_back({{.index = 7, .core = 7}, 999});
  scene.line().set_monitor_facts("s1", facts);
  CHECK_FALSE(scene.line().node().view("s1")->conflicts.empty());
}

TEST_CASE("drift that verify has read is repaired and counted") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.calls.own[111] = scene.machine;
  CHECK_FALSE(scene.verifier().verify().ok());
  CHECK(scene.line().check_drift().writes == 1);
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.board().counters().drift_found == 1);
  CHECK(scene.line().check_drift().planned == 0);
}

TEST_CASE("a restarted daemon keeps every vCPU in place and writes nothing") {
  LineScene scene;
  scene.boot_vm(100, 5);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "a", {4, 5}, true));
  REQUIRE(scene.container("s1", "b", {2, 3}, true));
  scene.start();
  scene.calls.writes.clear();
  CHECK(scene.line().adopt().planned == 1);
  CHECK(scene.calls.writes.empty());
  CHECK(scene.line().node().ledger().find("s1")->containers.size() == 2);
}

TEST_CASE("a VMM that exits ends its sandbox and frees its CPUs for the others") {
  LineScene scene;
  scene.boot_two(2);
  REQUIRE(scene.container("a", "c", {2}, true));
  REQUIRE(scene.container("b", "c", CpuSet::range(0, 3), false));
  CHECK(scene.cpus(210) == "0-1,3");
  scene.node.end_process(100);
  scene.calls.gone.insert(100);
  scene.line().refresh("a");
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b"});
  CHECK(scene.cpus(210) == "0-3");
  scene.start();
  scene.line().adopt();
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b"});
}

TEST_CASE("a shrinking cgroup is obeyed and degrades the plan") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.node.in_cgroup(100, "vms", "0-4");
  scene.calls.cgroup_of = [](int) { return CpuSet::range(0, 4); };
  scene.line().cgroup_written((scene.node.cgroup() / "vms").string());
  for (const int tid : {110, 111, 112, 100}) CHECK(scene.cpus(tid) == "4");
  CHECK_FALSE(scene.line().node().view("s1")->plan.warnings.empty());
}

TEST_CASE("libvirt's cgroups for threads bound no plan, the domain's own does") {
  for (const std::string domain :
       {"machine.slice/machine-qemu.scope", "machine/vm1.libvirt-qemu"}) {
    LineScene scene;
    scene.boot_vm(100, 3);
    scene.node.in_cgroup(100, domain, "0-5");
    const std::string below = domain.starts_with("machine.") ? "/libvirt/emulator" : "/emulator";
    scene.node.in_cgroup(100, domain + below, "7");
    policy::ledger::PodSeen pod{.id = "vm1", .vmm = tests::process_id(100), .domain = "vm1"};
    REQUIRE(scene.requests().submit({policy::ledger::Source::kApi, pod}));
    REQUIRE(scene.container("vm1", "app", {4, 5, 6}, true));
    CAPTURE(domain);
    CHECK(scene.line().node().view("vm1")->cgroup_cpus == CpuSet::range(0, 5));
  }
}

TEST_CASE("other processes are helpers only in a cgroup named after the sandbox") {
  const std::vector<std::pair<std::string, bool>> named = {{"user.slice", false},
                                                           {"kata_s10", false},
                                                           {"vms", false},
                                                           {"vms.slice", false},
                                                           {"kata_s", true},
                                                           {"pod1/s", true},
                                                           {"pod1/cri-containerd-s.scope", true},
                                                           {"s/below", true}};
  for (const auto& [cgroup, own] : named) {
    LineScene scene;
    scene.boot_vm(100, 1);
    scene.node.process(500, 1, "stranger", "/usr/bin/stranger");
    scene.node.in_cgroup(100, cgroup, "0-7");
    scene.node.in_cgroup(500, cgroup, "0-7");
    scene.node.cgroup_procs(cgroup, "100\n500\n");
    REQUIRE(scene.add("s", 100));
    REQUIRE(scene.container("s", "c", {2, 3}, false));
    CAPTURE(cgroup);
    CHECK(scene.cpus(100) == "2-3");
    CHECK(scene.cpus(500) == (own ? "2-3" : "0-7"));
  }
}

TEST_CASE("the root cgroup is never a sandbox's own, whatever its name") {
  for (const std::string cgroup : {"/", "/.", "/x/..", "/../cgroup", "../.."}) {
    LineScene scene;
    scene.boot_vm(100, 1);
    scene.node.process(500, 1, "stranger", "/usr/bin/stranger");
    scene.node.cgroup_procs(".", "500\n");
    policy::ledger::PodSeen pod{.id = "s"};
    pod.vmm = tests::process_id(100);
    pod.cgroup = cgroup;
    CAPTURE(cgroup);
    CHECK_FALSE(scene.requests().submit({policy::ledger::Source::kApi, pod}));
    scene.line().handle({policy::ledger::Source::kApi, pod});
    REQUIRE(scene.container("s", "c", {2, 3}, false));
    CHECK(scene.cpus(500) == "0-7");
  }
}

TEST_CASE("a refused thread is left alone, reported once, and not retried") {
  LineScene scene;
  scene.boot_vm(100, 2);
  scene.calls.set_faults[100] = {EPERM, 1000};
  REQUIRE(scene.add("s1", 100));
  CHECK(scene.container("s1", "c", {2, 3}, false)->failed == 1);
  CHECK(scene.board().counters().errors.at("permission") == 1);
  CHECK(scene.container("s1", "c", {2}, false)->failed == 0);
  CHECK(scene.line().node().view("s1")->threads[0].problem == "set: Operation not permitted");
  CHECK(std::ranges::count(scene.notified, "unmanaged") == 1);
  scene.calls.set_faults.clear();
  CHECK(scene.requests().reconcile("s1")->writes == 1);
  CHECK(scene.cpus(100) == "2");
}

TEST_CASE("unplaced threads are reported once, and again when placed") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  std::string text;
  const auto subscription = scene.board().feed().subscribe(
      board::NotificationKind::kUnplaced,
      [&](const board::Notification& notification) { text = notification.text; });
  for (const int tid : {110, 111}) scene.calls.set_faults[tid] = {EBUSY, 1000};
  REQUIRE(scene.container("s1", "c", {2, 3}, false));
  scene.line().check_drift();
  CHECK(std::ranges::count(scene.notified, "unplaced") == 1);
  CHECK(text == "2 threads cannot be placed yet, retrying: set: Device or resource busy");
  CHECK(std::ranges::count(scene.notified, "placed") == 0);
  scene.calls.set_faults.clear();
  scene.line().check_drift();
  CHECK(std::ranges::count(scene.notified, "placed") == 1);
  CHECK(scene.cpus(111) == "2-3");
}

TEST_CASE("threads that keep the line from finishing are counted one by one") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  for (const int tid : {110, 111}) scene.calls.set_faults[tid] = {EBUSY, 1000};
  CHECK(scene.container("s1", "c", {2, 3}, false)->failed == 2);
}

TEST_CASE("observe mode plans and reports, and writes nothing") {
  line::Options options = tests::at_home();
  options.observe = true;
  LineScene scene(8, options);
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  CHECK(scene.calls.writes.empty());
  CHECK(scene.line().node().view("s1")->plan.vcpus.size() == 3);
  CHECK(scene.line().node().view("s1")->threads.front().drifted());
  scene.line().configure({});
  CHECK(scene.cpus(111) == "4");
}

// Kata writes the sandbox's cgroup after the runtime has told of the container's new CPUs.
TEST_CASE("a moved container keeps its vCPUs, even if its cgroup follows later") {
  LineScene scene;
  scene.boot_pod("s1", 100, 1);
  scene.plug(100, 7);
  scene.plug(100, 6);
  REQUIRE(scene.add("s1", 100));
  scene.cpusets.make("pods/s1", {0, 2, 3});
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  scene.plug(100, 5);
  REQUIRE(scene.container("s1", "side", {0}, false));
  CHECK(scene.cpus(116) + ' ' + scene.cpus(117) == "2 3");
  const bool restarts = GENERATE(false, true);
  if (!restarts) REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.cpusets.make("pods/s1", {0, 4, 5});
  if (restarts) {
    scene.start();
    scene.line().adopt();
    CHECK(scene.cpus(116) == "0");
    REQUIRE(scene.container("s1", "app", {4, 5}, true));
  }
  scene.line().refresh("s1");
  CHECK(scene.cpus(115) == "0");
  CHECK(scene.cpus(116) + ' ' + scene.cpus(117) == "4 5");
}

TEST_CASE("invalid input is rejected with a reason and changes nothing") {
  LineScene scene;
  scene.boot_vm(100, 2);
  scene.node.process(300, 1, "bash", "/bin/bash");
  REQUIRE(scene.add("s1", 100));
  const auto before = *scene.line().node().ledger().find("s1");
  const auto code = [](const auto& result) { return result.error().code; };
  CHECK(code(scene.add("s2", 77777)) == ErrorCode::kInvalid);
  CHECK(scene.add("s2", 300).error().message == "vmm_pid: process 300 is not a VMM");
  CHECK(code(scene.add("s2", 0)) == ErrorCode::kInvalid);
  CHECK(code(scene.add("s2", 100)) == ErrorCode::kConflict);
  CHECK(code(scene.add("s2", 111)) == ErrorCode::kConflict);  // one of its threads
  CHECK(scene.container("s1", "c", {9}, false).error().message ==
        "cpus: this machine has no CPU 9 (it has 0-7)");
  CHECK(code(scene.container("nope", "c", {1}, false)) == ErrorCode::kNotFound);
  CHECK(code(scene.remove("nope")) == ErrorCode::kNotFound);
  CHECK(code(scene.requests().reconcile("nope")) == ErrorCode::kNotFound);
  CHECK(*scene.line().node().ledger().find("s1") == before);
  CHECK(scene.line().node().sandbox_ids().size() == 1);
}

TEST_CASE("an event with invalid ids is rejected, from any source") {
  LineScene scene;
  for (const std::string& id : {std::string("a\r\nDELETE /v1/sandboxes/s1 HTTP/1.1"),
                                std::string("../s1"), std::string(), std::string(129, 'a')}) {
    policy::ledger::PodSeen pod;
    pod.id = id;
    scene.line().handle({policy::ledger::Source::kNri, pod});
    const auto refused = scene.requests().submit({policy::ledger::Source::kApi, pod});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kInvalid);
    policy::ContainerFacts facts;
    facts.id = id;
    scene.line().handle({policy::ledger::Source::kNri, policy::ledger::whole_report("s1", facts)});
  }
  CHECK(scene.line().node().ledger().pods().empty());
  CHECK(scene.log_lines.find("event rejected") != std::string::npos);
  CHECK(scene.log_lines.find('\r') == std::string::npos);
  policy::ledger::PodSeen pod;
  pod.id = std::string(128, 'a');
  CHECK(scene.requests().submit({policy::ledger::Source::kApi, pod}));
}

TEST_CASE("the number of containers of a sandbox is limited") {
  LineScene scene;
  const auto see = [&](const std::string& sandbox, std::size_t first, std::size_t count) {
    std::vector<policy::ledger::Event> events;
    for (std::size_t i = first; i < first + count; ++i) {
      policy::ContainerFacts facts;
      facts.id = "c" + std::to_string(i);
      events.push_back(
          {policy::ledger::Source::kNri, policy::ledger::whole_report(sandbox, facts)});
    }
    scene.line().handle(events);
  };
  see("s1", 0, policy::kMaxContainers);
  const auto& pods = scene.line().node().ledger().pods();
  CHECK(pods.at("s1").containers.size() == policy::kMaxContainers);
  see("s1", policy::kMaxContainers, 1);
  CHECK(pods.at("s1").containers.size() == policy::kMaxContainers);
  const auto refused =
      scene.container("s1", "c" + std::to_string(policy::kMaxContainers), {1}, false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConflict);
  CHECK(scene.container("s1", "c0", {1}, false));  // one that is known
}

TEST_CASE("the number of containers of a node is limited") {
  policy::ledger::Ledger ledger;
  const auto event = [](std::size_t number) {
    policy::ContainerFacts facts;
    facts.id = "c" + std::to_string(number);
    const std::size_t sandbox = number / 64;
    return policy::ledger::Event{
        policy::ledger::Source::kNri,
        policy::ledger::whole_report("s" + std::to_string(sandbox), facts)};
  };
  for (std::size_t i = 0; i < policy::kMaxNodeContainers; ++i) ledger.apply(event(i));
  CHECK(registry::admit(event(0), ledger));  // one that is known
  const auto refused = registry::admit(event(policy::kMaxNodeContainers), ledger);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConflict);
  ledger.apply({policy::ledger::Source::kNri, policy::ledger::ContainerGone{"s0", "c0"}});
  CHECK(registry::admit(event(policy::kMaxNodeContainers), ledger));
}

TEST_CASE("the number of sandboxes of a node is limited") {
  LineScene scene;
  std::vector<policy::ledger::Event> events;
  for (std::size_t i = 0; i <= policy::kMaxSandboxes; ++i) {
    policy::ledger::PodSeen pod;
    pod.id = "s" + std::to_string(i);
    events.push_back({policy::ledger::Source::kNri, pod});
  }
  scene.line().handle(events);
  CHECK(scene.line().node().ledger().pods().size() == policy::kMaxSandboxes);
}

TEST_CASE("an offline CPU stays its container's, which gets it when it is back; a pin is refused") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  std::vector<policy::Cpu> cpus;
  for (int i = 0; i < 8; ++i) cpus.push_back({i, i, 0, 0, 0});
  const auto whole = *policy::Topology::make(cpus);
  cpus[5].online = false;
  scene.line().change_topology(*policy::Topology::make(cpus));
  REQUIRE(scene.container("s1", "c", {4, 5}, true));
  CHECK(scene.line().node().ledger().exclusive() == CpuSet{4, 5});
  CHECK(scene.cpus(110) + ' ' + scene.cpus(111) == "4 4");
  const auto refused = scene.requests().submit(
      {policy::ledger::Source::kApi, policy::ledger::OverrideSet{"s1", {{.cpus = {5}}}}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "cpus: CPU 5 is offline");
  scene.line().change_topology(whole);
  CHECK(std::set{scene.cpus(110), scene.cpus(111)} == std::set<std::string>{"4", "5"});
}

TEST_CASE("a thread gets a CPU that was offline while it was placed") {
  LineScene scene;
  scene.boot_pod("s1", 100, 1);
  REQUIRE(scene.add("s1", 100));
  scene.cpusets.make("", CpuSet::range(0, 6));
  REQUIRE(scene.container("s1", "c", CpuSet::range(3, 7), false));
  CHECK(scene.cpus(110) == "3-6");
  scene.cpusets.make("", scene.machine);
  scene.line().check_drift();
  CHECK(scene.cpus(110) == "3-7");
  CHECK(scene.line().check_drift().planned == 0);
}
