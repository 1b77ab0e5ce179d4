// SPDX-License-Identifier: Apache-2.0
// What verify says of the cgroups of containers to which we gave CPUs.
#include "tests/unit/api/scene.hpp"
#include "tests/unit/managed/cgroup_scene.hpp"

using namespace ka;
using namespace ka::tests;

namespace {

/// A node without VMs.
struct ManagedApi {
  ManagedApi() { api.router.set_manager(&*node.manager); }

  /// Severity and reason of the only finding; empty: there is none.
  std::string finding() {
    const json::object report = api.good("POST", "/v1/verify");
    const json::array& findings = report.at("findings").as_array();
    if (findings.empty()) return std::string(report.at("verdict").as_string());
    REQUIRE(findings.size() == 1);
    CHECK(findings.at(0).at("sandbox") == "s-a");
    return std::string(findings.at(0).at("severity").as_string()) + ' ' +
           std::string(findings.at(0).at("reason").as_string());
  }

  CgroupScene node{{"a"}};
  Api api;
};

}  // namespace

TEST_CASE("verify compares the cgroups of runc containers with their allocations", "[api]") {
  ManagedApi scene;
  scene.node.manager->apply();
  CHECK(scene.finding() == "ok");
  scene.node.tree.make(CgroupScene::cgroup("a"), policy::CpuSet{1});
  CHECK(scene.finding() == "violated cpuset-differs");
  scene.node.manager->apply();
  CHECK(scene.finding() == "ok");
}

TEST_CASE("while the runtime may be writing it, another cpuset is a note", "[api]") {
  ManagedApi scene;
  REQUIRE(scene.node.manager->create(container("own", 2)));
  REQUIRE_FALSE(scene.node.manager->updates().empty());
  CHECK(scene.finding() == "note cpuset-differs");
  scene.node.clock.advance(managed::Manager::kGrace);
  CHECK(scene.finding() == "violated cpuset-differs");
}

TEST_CASE("a container's cgroup that cannot be read is unknown", "[api]") {
  ManagedApi scene;
  scene.node.dir.write("cgroup/" + CgroupScene::cgroup("a") + "/cpuset.mems.effective", "x\n");
  CHECK(scene.finding() == "unknown cpuset-unread");
  CHECK(scene.api.good("POST", "/v1/verify").at("verdict") == "unknown");
}
