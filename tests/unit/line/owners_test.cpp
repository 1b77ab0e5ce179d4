// SPDX-License-Identifier: Apache-2.0
// What verify reports where kubelet's state, its PodResources API and cpusets contradict each
// other.
#include "affinity/line/owners.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::Assignment;
using policy::ledger::Claim;
using policy::ledger::KubeletSeen;
using policy::ledger::Source;

namespace {

/// A runc pod "ns/a" whose container "app" got CPUs 4-5 from kubelet, and has them.
struct Scene {
  Scene() {
    add_pod("a", "ns/a");
    set_cpus({4, 5});
    claim({4, 5});
    assign({4, 5});
  }

  void add_pod(const std::string& id, const std::string& name) {
    ledger.apply({Source::kNri,
                  policy::ledger::PodSeen{.id = id, .pod_uid = "uid-" + id, .pod_name = name}});
  }
  void set_cpus(CpuSet cpus) {
    policy::ContainerFacts facts;
    facts.id = "0123abcd";
    facts.name = "app";
    facts.cpus = std::move(cpus);
    ledger.apply({Source::kNri, policy::ledger::whole_report("a", facts)});
  }
  void claim(CpuSet cpus) {
    ledger.apply({Source::kKubelet,
                  KubeletSeen{CpuSet::range(0, 3), {{Claim{"uid-a", "app", std::move(cpus)}}}}});
  }
  void assign(CpuSet cpus) {
    ledger.apply({Source::kPodResources,
                  policy::ledger::ResourcesSeen{CpuSet::range(2, 7),
                                                {Assignment{"ns/a", "app", std::move(cpus), {}}}}});
  }
  void set_cgroup(CpuSet cpus) {
    tenants.list = {{"kubepods/cri-containerd-0123abcd.scope", std::move(cpus), {41}}};
  }

  std::vector<line::Finding> found() const {
    return line::evaluate_owners({ledger, tenants, past_grace, is_current, unanswered});
  }

  /// "degraded cpuset-not-written: ...", one a line.
  std::string findings() const {
    std::string text;
    for (const line::Finding& one : found()) {
      text += std::string(severity_name(one.severity)) + ' ' + one.reason + ": " + one.text + '\n';
    }
    return text;
  }

  policy::ledger::Ledger ledger;
  host::Tenants tenants;
  CpuSet past_grace = CpuSet::range(0, 7);
  bool is_current = true;
  std::string unanswered;
};

}  // namespace

TEST_CASE("no finding while state file, PodResources and cpusets agree") {
  Scene scene;
  CHECK(scene.findings().empty());
  scene.set_cgroup({4, 5});
  CHECK(scene.findings().empty());
}

TEST_CASE("kubelet's two sources of one container's CPUs are compared") {
  Scene scene;
  scene.assign({4, 6});
  CHECK(scene.findings() ==
        "degraded sources-disagree: container app of pod ns/a owns CPUs 4-5 by kubelet's state "
        "file, and CPUs 4,6 by its PodResources API\n");
  SECTION("not with an answer from before the state file changed") { scene.is_current = false; }
  SECTION("not where two pods have the name") { scene.add_pod("b", "ns/a"); }
  SECTION("not without a state file") {
    scene.ledger.apply({Source::kKubelet, KubeletSeen{}});
    scene.set_cpus({4, 6});
  }
  CHECK(scene.findings().empty());
}

TEST_CASE("containers that share the rest of their pod's CPUs are in the state file alone") {
  Scene scene;
  scene.ledger.apply(
      {Source::kKubelet,
       KubeletSeen{
           CpuSet::range(0, 3),
           {{{"uid-a", "", {4, 5, 6, 7}}, {"uid-a", "app", {4, 5}}, {"uid-a", "log", {6, 7}}}}}});
  scene.ledger.apply({Source::kPodResources,
                      policy::ledger::ResourcesSeen{CpuSet::range(2, 7),
                                                    {Assignment{"ns/a", "", {4, 5, 6, 7}, {}},
                                                     Assignment{"ns/a", "app", {4, 5}, {}},
                                                     Assignment{"ns/a", "log", {}, {}}}}});
  CHECK(scene.findings().empty());
}

TEST_CASE("a cgroup that kubelet did not write is found, whatever the runtime reports") {
  Scene scene;
  scene.set_cgroup({0, 1, 2, 3});
  CHECK(scene.findings() ==
        "degraded cpuset-not-written: kubelet assigned CPUs 4-5 to container app of pod ns/a, but "
        "its cgroup has CPUs 0-3\n");
  CHECK(scene.found().at(0).remedy.find("restart the pod") == 0);
  scene.past_grace = {4};
  CHECK(scene.findings().empty());
}

TEST_CASE("without a state file a cgroup is compared with what PodResources assigned") {
  Scene scene;
  scene.ledger.apply({Source::kKubelet, KubeletSeen{}});
  scene.set_cpus({4, 5});
  scene.set_cgroup({4, 5});
  CHECK(scene.findings().empty());
  scene.set_cgroup({0, 1, 2, 3});
  CHECK(scene.findings() ==
        "degraded cpuset-not-written: kubelet assigned CPUs 4-5 to container app of pod ns/a, but "
        "its cgroup has CPUs 0-3\n");
}

TEST_CASE("under CRI-O the container's cgroup is compared, not its monitor's") {
  Scene scene;
  const std::string slice = "kubepods.slice/kubepods-poduid.slice/";
  const auto is_at = [&](const std::string& container) {
    scene.tenants.list = {{slice + "crio-conmon-0123abcd.scope", {0, 1, 2, 3}, {40}},
                          {slice + container, {4, 5}, {41}}};
    return scene.findings().empty();
  };
  CHECK(is_at("crio-0123abcd.scope"));
  CHECK(is_at("crio-0123abcd.scope/container"));
  scene.tenants.list.back().cpus = {0, 1};
  CHECK(scene.findings() ==
        "degraded cpuset-not-written: kubelet assigned CPUs 4-5 to container app of pod ns/a, but "
        "its cgroup has CPUs 0-1\n");
}

TEST_CASE("without a cgroup of its own the reported cpuset counts") {
  Scene scene;
  scene.set_cpus({4});
  CHECK(scene.findings() ==
        "degraded cpuset-not-written: kubelet assigned CPUs 4-5 to container app of pod ns/a, but "
        "its cpuset has CPU 4\n");
}

TEST_CASE("sources that were not compared are no agreement") {
  Scene scene;
  scene.unanswered = "permission denied";
  CHECK(scene.findings() ==
        "note sources-not-compared: kubelet's state file is not compared with its PodResources "
        "API: permission denied\n");
}
