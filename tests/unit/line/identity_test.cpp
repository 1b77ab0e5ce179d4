// SPDX-License-Identifier: Apache-2.0
// Which process a sandbox's VMM is, what cannot be seen of it, and what is its own.
#include <algorithm>
#include <filesystem>
#include <functional>

#include "affinity/line/line.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using tests::LineScene;

TEST_CASE("a process that reused a VMM's pid while the daemon was down is not adopted") {
  const auto with = [](const std::function<void(LineScene&)>& change) {
    LineScene scene;
    scene.boot_vm(100, 2);
    REQUIRE(scene.add("a", 100));
    REQUIRE(scene.container("a", "c", {2}, true));
    change(scene);
    scene.calls.writes.clear();
    scene.start();
    scene.line().adopt();
    const bool is_known = !scene.line().node().sandbox_ids().empty();
    CHECK(is_known == scene.line().node().ledger().exclusive().contains(2));
    CHECK((is_known || scene.calls.writes.empty()));
    scene.start();
    CHECK(scene.line().adopt().planned == (is_known ? 1 : 0));  // the state file says the same
    return is_known;
  };
  CHECK(with([](LineScene&) {}));
  CHECK_FALSE(with([](LineScene& s) { s.node.thread(100, 100, "qemu-system-x86", 1, 7); }));
  CHECK_FALSE(with([](LineScene& s) {
    std::filesystem::remove(s.node.proc() / "100/exe");
    s.node.process(100, 1, "sleep", "/bin/sleep");
  }));
  CHECK_FALSE(with([](LineScene& s) {
    s.node.end_process(100);
    s.calls.gone.insert(100);
  }));
}

TEST_CASE("after a restart the runtime's word of an ended VMM's number lets nobody be written to") {
  const bool is_other_vmm = GENERATE(false, true);
  LineScene scene;
  scene.boot_vm(100, 2);
  const auto report = [&](std::uint64_t start_time) {
    policy::ContainerFacts facts;
    facts.id = "c";
    facts.cpus = {2};
    scene.line().handle(
        {{policy::ledger::Source::kNri,
          policy::ledger::PodSeen{.id = "a", .vmm = policy::ProcessId{100, start_time}}},
         {policy::ledger::Source::kNri, policy::ledger::whole_report("a", facts, true)}});
  };
  report(tests::process_id(100).start_time);
  REQUIRE(scene.cpus(110) == "2");
  if (is_other_vmm) scene.node.thread(100, 100, "qemu-system-x86", 1, 7);
  scene.calls.own.clear();
  scene.calls.writes.clear();
  scene.start();
  scene.line().adopt();
  report(is_other_vmm ? 7 : tests::process_id(100).start_time);
  scene.line().check_drift();
  CHECK(scene.line().node().sandbox_ids().empty() == is_other_vmm);
  CHECK(scene.calls.writes.empty() == is_other_vmm);
  CHECK(scene.line().node().ledger().exclusive() == CpuSet{2});  // the pod is still there
  scene.start();
  scene.line().adopt();
  report(is_other_vmm ? 7 : tests::process_id(100).start_time);
  CHECK(scene.line().node().sandbox_ids().empty() == is_other_vmm);
}

TEST_CASE("a process that reused a VMM's pid is not observed, in any cgroup") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.container("a", "c", {2}, true));
  scene.node.thread(100, 100, "sleep", 1, 7);
  scene.node.in_cgroup(100, "elsewhere", "0-7");
  scene.calls.writes.clear();
  scene.line().refresh("a");
  CHECK(scene.line().node().sandbox_ids().empty());
  CHECK(scene.calls.writes.empty());
}

TEST_CASE("a pidfd that reports a VMM's exit is final, for that VMM only") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("a", 100));
  scene.line().vmm_ended("a", {100, 7});
  CHECK(scene.line().node().sandbox_ids().size() == 1);
  scene.line().vmm_ended("b", tests::process_id(100));
  CHECK(scene.line().node().sandbox_ids().size() == 1);
  scene.line().vmm_ended("a", tests::process_id(100));  // though it is there to be seen
  CHECK(scene.line().node().sandbox_ids().empty());
}

TEST_CASE("a VMM whose first thread ended before its vCPUs is adopted after a restart") {
  LineScene scene;
  scene.boot_two(2);
  REQUIRE(scene.container("a", "c", {2}, true));
  REQUIRE(scene.container("b", "c", CpuSet::range(0, 3), false));
  scene.node.thread(100, 100, "qemu-system-x86", 1, 0, 'Z');
  std::filesystem::remove(scene.node.proc() / "100/exe");
  scene.node.write("proc/100/cmdline", "");
  scene.node.fd(101, 9, "anon_inode:kvm-vm");
  scene.start();
  scene.line().adopt();
  scene.line().check_drift();
  REQUIRE(scene.line().node().view("a"));
  CHECK(scene.cpus(110) == "2");
  CHECK(scene.cpus(210) == "0-1,3");
}

TEST_CASE("a sandbox that cannot be read keeps its last state, which is logged once") {
  LineScene scene;
  scene.boot_two(2);
  REQUIRE(scene.container("a", "c", {2}, true));
  REQUIRE(scene.container("b", "c", CpuSet::range(0, 3), false));
  const auto plan = scene.line().node().view("a")->plan;
  const auto tasks = scene.node.proc() / "100/task";
  std::filesystem::rename(tasks, scene.node.proc() / "100/hidden");
  scene.node.write("proc/100/task", "");  // ENOTDIR
  scene.line().refresh("a");
  scene.line().check_drift();
  const auto view = scene.line().node().view("a");
  REQUIRE(view);
  CHECK_FALSE(view->trouble.empty());
  CHECK(view->plan == plan);
  CHECK(view->threads.size() == 4);
  CHECK_FALSE(view->threads.front().seen);
  CHECK(scene.cpus(210) == "0-1,3");
  CHECK(std::ranges::count(scene.notified, "unseen") == 1);
  CHECK(scene.board().counters().errors.at("unreadable") == 2);
  scene.calls.writes.clear();
  REQUIRE(scene.container("a", "c", {3}, true));
  CHECK(std::ranges::none_of(scene.calls.writes, [](const auto& w) { return w.first < 200; }));

  std::filesystem::remove(tasks);
  std::filesystem::rename(scene.node.proc() / "100/hidden", tasks);
  scene.line().check_drift();
  CHECK(scene.line().node().view("a")->trouble.empty());
  CHECK(scene.line().node().view("a")->threads.front().seen);
  CHECK(scene.cpus(110) == "3");
  CHECK(std::ranges::count(scene.notified, "seen") == 1);
}

TEST_CASE("threads of a sandbox that cannot be observed leave the CPUs that another pod gets") {
  LineScene scene;
  scene.boot_two(2);
  REQUIRE(scene.container("a", "c", CpuSet::range(0, 3), false));
  const auto restore = scene.node.make_unreadable("proc/100/cgroup");
  SECTION("they are narrowed, and no more") {
    REQUIRE(scene.container("b", "app", {3}, true));
    CHECK(scene.cpus(110) == "0-2");
    CHECK(scene.cpus(100) == "0-2");
    CHECK_FALSE(scene.line().node().view("a")->threads.front().seen);
    CHECK_FALSE(scene.line().node().view("a")->threads.front().problem.empty());
    CHECK(scene.verifier().verify().verdict() == line::Verdict::kUnknown);
    REQUIRE(scene.container("b", "app", {3}, false));
    CHECK(scene.cpus(110) == "0-2");
    restore();
    scene.line().check_drift();
    CHECK(scene.cpus(110) == "0-3");
  }
  SECTION("one whose mask was made smaller meanwhile stays so") {
    scene.calls.own[110] = {1, 3};
    REQUIRE(scene.container("b", "app", {3}, true));
    CHECK(scene.cpus(110) == "1");
  }
  SECTION("one that cannot be told from another thread is not written to") {
    const auto line = scene.node.make_unreadable("proc/100/task/110/stat");
    REQUIRE(scene.container("b", "app", {3}, true));
    CHECK(scene.cpus(110) == "0-3");
    CHECK(scene.cpus(111) == "0-2");
  }
}

TEST_CASE("ENOENT is not the end while the kernel knows the process") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("a", 100));
  scene.node.end_process(100);
  scene.line().refresh("a");
  REQUIRE(scene.line().node().view("a"));
  CHECK_FALSE(scene.line().node().view("a")->trouble.empty());
  scene.calls.gone.insert(100);
  scene.line().refresh("a");
  CHECK(scene.line().node().sandbox_ids().empty());
}

TEST_CASE("unreadable threads keep their last state, and others are placed") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.container("a", "c", {2, 3}, true));
  const auto seen = [&](int tid) {
    for (const auto& thread : scene.line().node().view("a")->threads) {
      if (thread.facts.key.tid == tid) return std::pair(thread.seen, thread.facts.role);
    }
    return std::pair(false, policy::Role::kHelper);
  };
  const auto line = scene.node.proc() / "100/task/111/stat";
  std::filesystem::rename(line, scene.node.proc() / "line");
  std::filesystem::create_directory(line);  // EISDIR
  scene.calls.get_faults[112] = {EIO, 100};
  scene.calls.own[110] = {5};
  scene.line().refresh("a");
  CHECK(seen(110) == std::pair(true, policy::Role::kVcpu));
  CHECK(seen(111) == std::pair(false, policy::Role::kVcpu));
  CHECK(seen(112) == std::pair(false, policy::Role::kVcpu));
  CHECK(scene.line().node().view("a")->plan.vcpus.size() == 3);
  CHECK(scene.cpus(110) != "5");
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kUnknown);
  CHECK(scene.verifier().verify().seen.threads == 3);
  std::filesystem::remove(line);
  std::filesystem::rename(scene.node.proc() / "line", line);
  scene.calls.get_faults.clear();
  scene.line().check_drift();
  CHECK(seen(111).first);
  CHECK(scene.verifier().verify().ok());
}

TEST_CASE("a mask that is taken back from a process with the VMM's pid is notified") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("a", 100));
  scene.calls.before_write = [&](int tid) {
    if (tid == 100) scene.node.thread(100, 100, "stranger", 1, 7);
  };
  (void)scene.container("a", "c", {2}, true);
  CHECK(std::ranges::count(scene.notified, "taken-back") == 1);
  CHECK(scene.cpus(100) == "0-7");
}

TEST_CASE("a cgroup that is not the sandbox's own is rejected with the reason") {
  LineScene scene;
  for (const int pid : {100, 200}) scene.boot_vm(pid, 1);
  scene.node.in_cgroup(100, "pods/a/inner", "0-7");
  scene.node.in_cgroup(200, "pods/b", "0-7");
  scene.node.cgroup_procs("pods/a/inner", "100\n");
  scene.node.cgroup_procs("pods/b", "200\n");
  scene.node.cgroup_procs("pods/a/other", "");
  const auto put = [&](const std::string& id, int pid, const std::string& cgroup) {
    policy::ledger::PodSeen pod{.id = id, .cgroup = cgroup};
    pod.vmm = policy::ProcessId{pid, 0};
    const auto done = scene.requests().submit({policy::ledger::Source::kApi, pod});
    return done ? std::string("taken") : done.error().message;
  };
  CHECK(put("a", 100, "/pods") ==
        "cgroup: /pods is not the sandbox's own: process 200 \"qemu-system-x86\" in its cgroup was "
        "not started by the VMM or its shim");
  CHECK(put("a", 100, "/pods/b") == "cgroup: the VMM is not in /pods/b but in /pods/a/inner");
  CHECK(put("b", 200, "/pods/b") == "taken");
  CHECK(put("a", 100, "pods/") == "cgroup: /pods holds sandbox \"b\", which is in /pods/b");
  scene.node.process(500, 100, "passt", "/usr/bin/passt");
  scene.node.cgroup_procs("pods/a/other", "500\n");
  CHECK(put("a", 100, "/pods/a") == "taken");
  scene.node.in_cgroup(200, "elsewhere", "0-7");  // as it was when its cgroup was named
  CHECK(put("a", 100, "/pods") == "cgroup: /pods holds sandbox \"b\", which is in /pods/b");
  CHECK(put("a", 100, "/pods/a/inner") == "taken");
}

TEST_CASE("a cgroup of which something cannot be read is not accepted for a sandbox") {
  for (const std::string unread : {"proc/100/cgroup", "proc/500/task/500/stat", "proc/200/cgroup",
                                   "cgroup/pods", "cgroup/pods/x/cgroup.procs"}) {
    LineScene scene;
    scene.boot_vm(100, 1);
    scene.boot_vm(200, 1);
    REQUIRE(scene.add("b", 200));
    scene.node.process(500, 1, "sleep", "/bin/sleep");
    scene.node.in_cgroup(100, "pods/a", "0-7");
    scene.node.in_cgroup(200, "b", "0-7");
    scene.node.cgroup_procs("pods/a", "100\n");
    scene.node.cgroup_procs("pods/x", "500\n");
    policy::ledger::PodSeen pod{.id = "a", .cgroup = "/pods"};
    pod.vmm = policy::ProcessId{100, 0};
    const auto put = [&] { return scene.requests().submit({policy::ledger::Source::kApi, pod}); };
    CAPTURE(unread);
    const auto restore = scene.node.make_unreadable(unread);
    const auto done = put();
    CHECK((!done && done.error().code == base::ErrorCode::kUnavailable));
    CHECK(scene.line().node().ledger().find("a") == nullptr);
    restore();
    CHECK(put().error().code == base::ErrorCode::kInvalid);
    scene.node.cgroup_procs("pods/x", "");
    CHECK(put());
  }
}

TEST_CASE("what a guest reports decides at once whether its containers are isolated") {
  LineScene scene(8, {});
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.container("a", "own", {4, 5}, true));
  REQUIRE(scene.container("a", "rest", CpuSet::range(0, 3), false));
  CHECK(std::ranges::count(scene.notified, "container-isolated") == 0);
  policy::GuestReport report;
  report.containers = {{.id = "own", .method = policy::GuestMethod::kCgroupV2}};
  board::GuestView guest{.address = "vsock:3", .connected = true, .text = {}};
  guest.report = report;
  guest.current = true;
  scene.board().set_guest("a", guest);
  CHECK(std::ranges::count(scene.notified, "container-isolated") == 1);
}

TEST_CASE(
    "a write whose thread could not be verified is undone once a stranger is seen to have it") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  scene.calls.after_write = [&](int tid) {
    if (tid == 111) scene.node.write("proc/100/task/111/stat", "");
  };
  (void)scene.container("s1", "app", {4, 5}, true);
  REQUIRE(scene.cpus(111) == "4");
  scene.calls.after_write = nullptr;
  scene.node.end_thread(100, 111);
  scene.node.thread(111, 111, "stranger", 1);
  scene.calls.gone.insert(111);
  scene.line().check_drift();
  CHECK(scene.cpus(111) == "0-7");
  CHECK(std::ranges::count(scene.notified, "taken-back") == 1);
  scene.calls.own[111] = {4};
  scene.line().check_drift();
  CHECK(scene.cpus(111) == "4");
}
