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

TEST_CASE("on the socket for reads, the user that may sends class requests, and no one else",
          "[api]") {
  ManagedApi scene;
  REQUIRE(scene.node.manager->create(container("own", 2)));
  const auto send = [&](std::optional<http::Peer> peer, const char* body) {
    return scene.api.router.handle_reads({"PUT", "/v1/class-requests/s-own", body, peer});
  };
  constexpr http::Peer kReporter{.uid = 65533, .pid = 7};
  constexpr const char* kNone = R"({"container":"app","class":"none"})";
  CHECK(send(kReporter, kNone).status == 403);
  scene.api.router.set_annotations_uid(65533);
  CHECK(send(http::Peer{.uid = 65532, .pid = 8}, kNone).status == 403);
  CHECK(send(std::nullopt, kNone).status == 403);
  CHECK(scene.api.router.handle_reads({"PUT", "/v1/classes/s-own", kNone, kReporter}).status ==
        403);
  CHECK(
      scene.api.router.handle_reads({"DELETE", "/v1/class-requests/s-own", "", kReporter}).status ==
      403);
  CHECK(send(kReporter, kNone).status == 200);
  const json::object pools = scene.api.good("GET", "/v1/pools");
  for (const json::value& one : pools.at("containers").as_array()) {
    if (one.at("id") != "own") continue;
    CHECK(one.at("requested") == "none");
    CHECK(one.at("problem") == "not-allowed");
  }
  for (const char* body : {"", "{}", "[]", R"({"container":7})", R"({"class":"none"})",
                           R"({"container":"app","class":7})", R"({"container":"app","x":1})"}) {
    CHECK(send(kReporter, body).status == 400);
  }
  CHECK(send(kReporter, R"({"container":"other"})").status == 404);
  CHECK(send(kReporter, R"({"container":"app"})").status == 200);
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
