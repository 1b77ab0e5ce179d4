// SPDX-License-Identifier: Apache-2.0
// What verify says of the cgroups of containers to which we gave CPUs.
#include "tests/unit/api/scene.hpp"
#include "tests/unit/managed/cgroup_scene.hpp"

using namespace ka;
using namespace ka::tests;

namespace {

/// A node without VMs.
struct ManagedApi {
  explicit ManagedApi(const policy::managed::Rules& rules = {}) : node({"a"}, rules) {
    api.router.set_manager(&*node.manager);
  }

  /// Severity and reason of each finding, but of cgroups.
  std::string reasons() {
    std::string all;
    const json::object report = api.good("POST", "/v1/verify");
    for (const json::value& found : report.at("findings").as_array()) {
      if (found.at("invariant") == "drift") continue;
      all += (all.empty() ? "" : ", ") + std::string(found.at("severity").as_string()) + ' ' +
             std::string(found.at("reason").as_string());
    }
    return all;
  }

  void keep_online(const policy::CpuSet& cpus) {
    auto all = ka::test::grid_cpus({});
    for (policy::Cpu& cpu : all) cpu.online = cpus.contains(cpu.cpu);
    node.manager->change_machine(policy::Topology::make(all).value());
  }

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

  CgroupScene node;
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

TEST_CASE("a container whose CPUs went offline is degraded, and named", "[api]") {
  ManagedApi scene;
  REQUIRE(scene.node.manager->create(container("own", 2)));
  REQUIRE(scene.node.manager->change("s-own", {}, policy::managed::CpuUse::kExclusive));
  const policy::CpuSet owned = scene.node.manager->books().cpus_of("own");
  REQUIRE(owned.size() == 2);
  CHECK(scene.reasons() == "");
  scene.keep_online(policy::CpuSet{0, owned.first()});
  CHECK(scene.reasons() == "degraded class-offline");
  scene.keep_online(policy::CpuSet::range(0, 7));
  CHECK(scene.reasons() == "");
}

TEST_CASE("a container whose allocation was lost is degraded where it is to have CPUs", "[api]") {
  policy::managed::Rules rules;
  rules.by_namespace["shop"] = policy::managed::CpuUse::kExclusive;
  ManagedApi scene(rules);
  scene.node.manager->adopt(container("own", 2));
  CHECK(scene.reasons() == "degraded class-adopted");
  REQUIRE(scene.node.manager->change("s-own", {}, policy::managed::CpuUse::kExclusive));
  CHECK(scene.reasons() == "");
}

TEST_CASE("a class that a container cannot have is a note", "[api]") {
  ManagedApi scene;
  auto own = container("own", 2);
  own.candidate.requested = "share";
  REQUIRE(scene.node.manager->create(own));
  CHECK(scene.reasons() == "note class-not-allowed");
}

TEST_CASE("allocations that are not on disk are degraded", "[api]") {
  ManagedApi scene;
  const auto file = scene.node.dir.path() / "allocations";
  std::filesystem::remove(file);
  std::filesystem::create_directories(file / "x");
  scene.node.manager->end("a");
  CHECK(scene.reasons() == "degraded allocations-unsaved");
}
