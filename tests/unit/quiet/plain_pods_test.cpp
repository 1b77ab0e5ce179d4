// SPDX-License-Identifier: Apache-2.0
// grade = "quiet" of containers without a VM that own CPUs.
#include "affinity/line/plain_pods.hpp"
#include "tests/unit/quiet/scene.hpp"

using namespace ka;
using policy::CpuSet;
using Sets = std::vector<std::string>;

namespace {

line::Options options_of(const std::string& handler) {
  line::Options options = tests::at_home();
  options.by_handler[handler] = options.settings;
  options.by_handler[handler].grade = policy::plan::Grade::kQuiet;
  return options;
}

line::Options trading() {
  line::Options options = tests::at_home();
  options.quiet.namespaces = {"trading"};
  return options;
}

/// Beside the VMs a pod of runc, "r".
struct Scene : tests::QuietScene {
  explicit Scene(line::Options options = trading()) : QuietScene(std::move(options)) {
    helper->requests.clear();
  }

  void add_pod(const std::string& handler = {}) {
    policy::ledger::PodSeen pod{.id = "r"};
    pod.pod_name = "trading/engine";
    pod.handler = handler;
    handle(pod);
  }

  void handle(policy::ledger::EventBody body) {
    line().handle({policy::ledger::Source::kNri, std::move(body)});
    run_loop();
  }

  /// "4: quiet", or why it is not; empty: it is no pod with a grade.
  std::string pod_grade() {
    const auto pods = line().node().graded_pods();
    if (pods.empty()) return {};
    REQUIRE(pods.size() == 1);
    const auto& obstacle = pods[0].grade.obstacle;
    return policy::format_list(pods[0].cpus) + ": " +
           (obstacle ? messages::obstacle_text(*obstacle) : "quiet");
  }
};

}  // namespace

TEST_CASE("the CPUs of a container without a VM are asked for until it ends") {
  Scene scene;
  scene.add_pod();
  CHECK(scene.pod_grade().empty());
  scene.own("r", {4, 5});
  CHECK(scene.pod_grade() == "4-5: quiet");
  CHECK(scene.count("quiet") == 1);
  SECTION("it exits, and kubelet still lists its CPUs") {
    scene.handle(policy::ledger::ContainerExited{"r", "app"});
  }
  SECTION("it is removed") { scene.handle(policy::ledger::ContainerGone{"r", "app"}); }
  SECTION("its pod is removed") { scene.handle(policy::ledger::PodGone{"r"}); }
  SECTION("it loses its CPUs") { REQUIRE(scene.container("r", "app", {0, 1}, false)); }
  scene.run_loop();
  CHECK(scene.helper->requested() == Sets{"4-5", ""});
  CHECK(scene.pod_grade().empty());
}

TEST_CASE("a container without a VM that gets other CPUs keeps the host off those") {
  Scene scene;
  scene.add_pod();
  scene.own("r", {4, 5});
  scene.own("r", {4});
  CHECK(scene.helper->requested() == Sets{"4-5", "4"});
  CHECK(scene.pod_grade() == "4: quiet");
}

TEST_CASE("settings of a handler without VMs count for its pods") {
  Scene scene(options_of("runc"));
  const std::string handler = GENERATE("runc", "", "crun", "kata");
  scene.add_pod(handler);
  scene.own("r", {4});
  const bool is_quiet = handler.empty() || handler == "runc";
  CHECK(scene.helper->requested() == (is_quiet ? Sets{"4"} : Sets{}));
  CHECK(scene.pod_grade() == (is_quiet ? "4: quiet" : ""));
}

TEST_CASE("VM and container are claimed together, and a CPU that both own for neither") {
  line::Options options = tests::quiet_options();
  options.quiet.namespaces = {"trading"};
  Scene scene(options);
  scene.add_pod();
  scene.own("a", {2, 3});
  scene.own("r", {4, 5});
  CHECK(scene.helper->requested().back() == "2-5");
  scene.own("r", {3, 4});
  CHECK(scene.helper->requested().back() == "4");
}

TEST_CASE("a pod that may be a VM's is not taken for one without") {
  policy::ledger::PodRecord pod;
  pod.id = "r";
  CHECK_FALSE(line::is_plain(pod));
  pod.pod_name = "trading/engine";
  CHECK(line::is_plain(pod));
  SECTION("its VMM is known") { pod.vmm = policy::ProcessId{100, 1}; }
  SECTION("its shim proxy is known") { pod.proxy = policy::ProcessId{100, 1}; }
  SECTION("it is a libvirt domain") { pod.domain = "vm"; }
  SECTION("it asks for a libvirt domain") { pod.requested_domain = "vm"; }
  CHECK_FALSE(line::is_plain(pod));
}

TEST_CASE("a container without a VM is released, also over a restart, and taken again") {
  Scene scene;
  scene.add_pod();
  scene.own("r", {4});
  const bool alone = GENERATE(true, false);
  if (alone) {
    REQUIRE(scene.requests().release("r"));
  } else {
    scene.line().release_all();
  }
  scene.run_loop();
  CHECK(scene.helper->requested().back() == "");
  CHECK(scene.pod_grade() == "4: it is released");
  scene.quiet.reset();
  scene.start();
  scene.follow();
  CHECK(scene.helper->requested().back() == "");
  CHECK(scene.pod_grade() == "4: it is released");
  if (alone) {
    REQUIRE(scene.requests().reconcile("r"));
  } else {
    scene.line().reconcile_all();
  }
  scene.run_loop();
  CHECK(scene.helper->requested().back() == "4");
  CHECK(scene.pod_grade() == "4: quiet");
}

TEST_CASE("a released pod that comes back under its id is not released") {
  Scene scene;
  scene.add_pod();
  scene.own("r", {4});
  scene.line().release_all();
  scene.handle(policy::ledger::PodGone{"r"});
  scene.add_pod();
  scene.own("r", {4});
  CHECK(scene.pod_grade() == "4: quiet");
}

TEST_CASE("after a restart nothing is asked for a container before the sources have spoken") {
  Scene scene;
  scene.add_pod();
  scene.own("r", {4});
  scene.helper->requests.clear();
  scene.quiet.reset();
  scene.start();
  scene.quiet.emplace(scene.io, scene.clock, scene.line().node(),
                      quiet::Quiet::Places{scene.temp.path() / "helper.sock", scene.temp.path()});
  scene.quiet->start();
  scene.line().expect(policy::ledger::Source::kNri);
  scene.line().adopt();
  scene.check_drift();
  CHECK(scene.helper->requested() == Sets{});
  scene.line().stop_waiting();
  scene.run_loop();
  CHECK(scene.helper->requested() == Sets{"4"});
}

TEST_CASE("other settings ask for nothing for a container without a VM") {
  line::Options options = trading();
  std::string why;
  SECTION("nothing is written") {
    options.observe = true;
    why = "4: mode is \"observe\", nothing is written";
  }
  SECTION("everything is released") {
    options.enable = false;
    why = "4: enable is false";
  }
  SECTION("its namespace is not listed") { options.quiet.namespaces = {"shop"}; }
  Scene scene(options);
  scene.add_pod();
  scene.own("r", {4});
  CHECK(scene.helper->requested().empty());
  CHECK(scene.pod_grade() == why);
}

TEST_CASE("a container in one of the host's units is not driven off its own CPUs") {
  Scene scene;
  scene.add_pod();
  policy::ledger::PodSeen pod{.id = "r"};
  pod.cgroup = "/system.slice/engine.service";
  scene.handle(pod);
  scene.own("r", {4});
  CHECK(scene.helper->requested().empty());
  CHECK(scene.pod_grade() == "4: it runs in system.slice, which cannot leave its CPUs");
}

TEST_CASE("verify names a pod without a VM that is not quiet, with reason and remedy") {
  Scene scene;
  scene.add_pod();
  scene.own("r", {4});
  const auto found = [&] {
    std::string text;
    for (const line::Finding& finding : scene.verifier().verify().findings) {
      if (finding.invariant != "grade") continue;
      CHECK(finding.severity == line::Severity::kDegraded);
      text += finding.text + " -> " + finding.remedy;
    }
    return text;
  };
  CHECK(found().empty());
  scene.hang_up();
  scene.check_drift();
  CHECK(found().starts_with("pod trading/engine is not quiet: the helper"));
  CHECK(found().ends_with("-> systemctl enable --now kata-affinity-helper.socket"));
  scene.line().release_all();
  CHECK(found().empty());
}
