// SPDX-License-Identifier: Apache-2.0
// A cgroup that is named for a sandbox while it is the sandbox's own, and what others put into it
// later.
#include <algorithm>
#include <string>

#include "affinity/line/line.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::ledger::Source;
using tests::LineScene;

namespace {

policy::ledger::PodSeen pod_of(const std::string& id, int pid, const std::string& cgroup = {}) {
  policy::ledger::PodSeen pod{.id = id, .cgroup = cgroup};
  pod.vmm = tests::process_id(pid);
  return pod;
}

/// Sandbox "g" has /pods, with CPU 1 its container's alone; later a stranger (500) and another VM
/// (200) are put into cgroups below it.
struct Shared {
  Shared() {
    for (const int pid : {100, 200}) scene.boot_vm(pid, 1);
    scene.node.process(500, 1, "sleep", "/bin/sleep");
    scene.node.in_cgroup(100, "pods/a", "0-7");
    scene.node.cgroup_procs("pods/a", "100\n");
    REQUIRE(scene.requests().submit({Source::kApi, pod_of("g", 100, "/pods")}));
    REQUIRE(scene.container("g", "c", {1, 2}, true));
    scene.node.in_cgroup(200, "pods/b", "0-7");
    scene.node.in_cgroup(500, "pods/x", "0-7");
    scene.node.cgroup_procs("pods/b", "200\n");
    scene.node.cgroup_procs("pods/x", "500\n");
    scene.line().refresh("g");
  }

  std::string foreign(const std::string& id) {
    std::string text;
    for (const std::string& one : scene.line().node().view(id)->foreign) text += one + '\n';
    return text;
  }

  LineScene scene;
};

}  // namespace

TEST_CASE("processes that join a sandbox's cgroup later are not placed with it, and are named") {
  Shared shared;
  LineScene& scene = shared.scene;
  CHECK(scene.cpus(200) == "0-7");
  CHECK(scene.cpus(500) == "0-7");
  CHECK(shared.foreign("g").find("process 500 \"sleep\" in its cgroup was not started by") !=
        std::string::npos);
  CHECK(std::ranges::count(scene.notified, "foreign-process") == 2);
  scene.line().refresh("g");
  CHECK(std::ranges::count(scene.notified, "foreign-process") == 2);
  CHECK(scene.line().check_drift().planned == 0);
}

TEST_CASE("an operator cannot name a VM in the cgroup of another sandbox") {
  Shared shared;
  LineScene& scene = shared.scene;
  for (const std::string cgroup : {"", "/pods/b"}) {
    const auto put = scene.requests().submit({Source::kApi, pod_of("h", 200, cgroup)});
    REQUIRE_FALSE(put);
    CHECK(put.error().code == base::ErrorCode::kConflict);
    CHECK(put.error().message ==
          "cgroup: /pods/b, where the VMM is, lies in /pods, the cgroup of sandbox \"g\"");
  }
  CHECK(scene.line().node().ledger().find("h") == nullptr);
  policy::ledger::PodSeen more{.id = "g", .pod_uid = "uid"};
  CHECK(scene.requests().submit({Source::kApi, more}));  // names neither cgroup nor VM
}

TEST_CASE("a VM in the cgroup of another sandbox that a runtime reports has its own plan only") {
  Shared shared;
  LineScene& scene = shared.scene;
  scene.line().handle({Source::kNri, pod_of("h", 200)});
  REQUIRE(scene.container("h", "c", {4, 5}, false));
  CHECK(scene.cpus(200) == "4-5");
  scene.calls.writes.clear();
  scene.line().reconcile_all();
  CHECK(scene.line().check_drift().planned == 0);
  CHECK(scene.calls.writes.empty());
  CHECK(scene.broken().empty());
  CHECK(shared.foreign("g").find("process 200 \"qemu-system-x86\" in its cgroup belongs to sandbox "
                                 "\"h\"") != std::string::npos);
  scene.start();
  scene.line().adopt();
  CHECK(scene.cpus(200) == "4-5");
  CHECK(scene.cpus(500) == "0-7");
}

TEST_CASE("a helper that turns out to be another sandbox's VM is let go at once") {
  LineScene scene;
  for (const int pid : {100, 200}) {
    scene.boot_vm(pid, 1);
    scene.node.in_cgroup(pid, "kata_g", "0-7");
  }
  scene.node.cgroup_procs("kata_g", "100\n200\n");
  REQUIRE(scene.add("g", 100));
  REQUIRE(scene.container("g", "c", {1, 2}, false));
  REQUIRE(scene.cpus(200) == "1-2");
  scene.line().handle({Source::kNri, pod_of("h", 200)});
  REQUIRE(scene.container("h", "c", {4, 5}, false));
  CHECK(scene.cpus(200) == "4-5");
  const auto& threads = scene.line().node().view("g")->threads;
  CHECK(std::ranges::none_of(threads, [](const auto& one) { return one.facts.key.pid == 200; }));
  CHECK(scene.line().check_drift().planned == 0);
}

TEST_CASE("a stranger beside the VMM in the cgroup that is named for it is refused") {
  LineScene scene;
  scene.boot_vm(100, 1);
  scene.node.process(500, 1, "sleep", "/bin/sleep");
  for (const int pid : {100, 500}) scene.node.in_cgroup(pid, "vm", "0-7");
  scene.node.cgroup_procs("vm", "100\n500\n");
  const auto put = [&] { return scene.requests().submit({Source::kApi, pod_of("g", 100, "/vm")}); };
  REQUIRE_FALSE(put());
  CHECK(put().error().message ==
        "cgroup: /vm is not the sandbox's own: process 500 \"sleep\" in its cgroup was not started "
        "by the VMM or its shim");
  scene.node.thread(500, 500, "sleep", 100);
  CHECK(put());
}

TEST_CASE("processes that come and go in a sandbox's cgroup do not fill the log") {
  Shared shared;
  LineScene& scene = shared.scene;
  for (int pid = 600; pid < 700; ++pid) {
    scene.node.process(pid, 1, "sleep", "/bin/sleep");
    scene.node.cgroup_procs("pods/x", std::to_string(pid) + '\n');
    scene.line().refresh("g");
  }
  CHECK(std::ranges::count(scene.notified, "foreign-process") == 16);
  scene.node.cgroup_procs("pods/x", "");
  scene.node.cgroup_procs("pods/b", "");
  scene.line().refresh("g");
  CHECK(shared.foreign("g").empty());
  scene.node.cgroup_procs("pods/x", "500\n");
  scene.line().refresh("g");
  CHECK(std::ranges::count(scene.notified, "foreign-process") == 17);
}
