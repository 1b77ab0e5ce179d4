// SPDX-License-Identifier: Apache-2.0
// GET /v1/explain/cpu/N: what each source said, when, and which of them decided.
#include <algorithm>
#include <optional>

#include "tests/unit/api/scene.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::Source;
using tests::Api;
using tests::json::object;

namespace {

/// "source: text", with "*" before what decides.
std::string report_lines(const object& cpu) {
  std::string lines;
  for (const auto& report : cpu.at("reports").as_array()) {
    lines += report.at("decides").as_bool() ? "*" : "";
    lines += std::string(report.at("source").as_string()) + ": " +
             std::string(report.at("text").as_string()) + '\n';
  }
  return lines;
}

/// The time of the only report of a source; absent: it has none.
std::optional<std::string> time_of(const object& cpu, std::string_view source) {
  for (const auto& report : cpu.at("reports").as_array()) {
    if (report.at("source").as_string() != source) continue;
    const auto& time = report.at("time");
    return time.is_null() ? std::nullopt : std::optional(std::string(time.as_string()));
  }
  return std::nullopt;
}

policy::ledger::Event claims(std::vector<policy::ledger::Claim> list, CpuSet pool) {
  return {Source::kKubelet, policy::ledger::KubeletSeen{pool, std::move(list)}};
}

policy::ledger::Event seen(Source source, const CpuSet& cpus) {
  policy::ledger::ContainerSeen container{
      .sandbox = "s1", .id = "c1", .spec = {}, .exclusive = {}, .before = {}};
  container.spec.name = "app";
  container.spec.cpus = cpus;
  return {source, container};
}

}  // namespace

TEST_CASE("a CPU is explained by its owner, the report that decides, and what is placed there",
          "[api]") {
  Api api;
  api.play_pod();
  const object cpu = api.good("GET", "/v1/explain/cpu/4");
  CHECK(cpu.at("cpu") == 4);
  CHECK(cpu.at("state") == "exclusive");
  CHECK(cpu.at("in_doubt") == false);
  CHECK(cpu.at("since") == "1970-01-01T01:00:00.000Z");
  CHECK(tests::text(cpu.at("owners")) ==
        R"([{"pod":"s1","pod_name":"shop/cart","container":"c1","name":"app","vm":true,)"
        R"("basis":"quota","in_doubt":false,"text":"container app of pod shop/cart"}])");
  CHECK(report_lines(cpu) ==
        "kubelet: not followed on this node\n"
        "pod-resources: not followed on this node\n"
        "*api: container app of pod shop/cart may use CPUs 4-5\n");
  CHECK(tests::text(cpu.at("placed")) ==
        R"([{"sandbox":"s1","pod_name":"shop/cart",)"
        R"("text":"vCPU 1 runs only on CPU 4, for container c1"}])");
}

TEST_CASE("nothing is said to run on a CPU that is withheld, since its owner is in doubt",
          "[api]") {
  Api api;
  api.play_pod();
  REQUIRE(api.scene.container("s1", "c1", {4, 5}, false));
  policy::ContainerFacts other;
  other.id = "b-app";
  other.cpus = {6};
  other.quota = -1;
  api.scene.line().handle({{Source::kNri, policy::ledger::PodSeen{.id = "b", .pod_uid = "uid-b"}},
                           {Source::kNri, policy::ledger::whole_report("b", other)}});
  REQUIRE(api.scene.container("s1", "c1", {4, 5, 6}, false));
  CHECK(api.good("GET", "/v1/explain/cpu/6").at("state") == "unknown");
  CHECK(tests::text(api.good("GET", "/v1/explain/cpu/6").at("placed")) == "[]");
  CHECK(tests::text(api.good("GET", "/v1/explain/cpu/5").at("placed")).find("0-1,4-5") !=
        std::string::npos);
}

TEST_CASE("each source's last word is kept with its time, also where another one outranks it",
          "[api]") {
  Api api;
  api.play_pod();
  api.scene.line().handle(claims({{"u1", "app", {4, 5}}}, CpuSet{0, 1, 2, 3, 6, 7}));
  api.scene.clock.advance(std::chrono::seconds(5));
  const auto set_nri = [&](bool up) { api.scene.board().set_source(Source::kNri, {up, "test"}); };
  set_nri(true);
  api.scene.line().handle(seen(Source::kNri, {4, 5}));
  api.scene.clock.advance(std::chrono::seconds(5));
  api.scene.line().handle(seen(Source::kPersist, {2, 3}));
  const object cpu = api.good("GET", "/v1/explain/cpu/4");
  CHECK(cpu.at("state") == "exclusive");
  CHECK(report_lines(cpu) ==
        "*kubelet: CPU 4 is assigned to container app of pod u1\n"
        "pod-resources: not followed on this node\n"
        "api: container app of pod shop/cart may use CPUs 4-5\n"
        "nri: container app of pod shop/cart may use CPUs 4-5\n"
        "persist.json: container app of pod shop/cart may use CPUs 2-3\n");
  CHECK(time_of(cpu, "kubelet") == "1970-01-01T01:00:00.000Z");
  CHECK(time_of(cpu, "nri") == "1970-01-01T01:00:05.000Z");
  CHECK(time_of(cpu, "persist.json") == "1970-01-01T01:00:10.000Z");
  const object other = api.good("GET", "/v1/explain/cpu/2");
  CHECK(other.at("state") == "shared");
  CHECK(report_lines(other).find("*kubelet: CPU 2 is in the shared pool\n") == 0);
}

TEST_CASE("a CPU of a prepared claim is explained by it, with a container and without", "[api]") {
  Api api;
  api.play_pod();
  api.scene.board().set_source(Source::kDra, {true, "test"});
  api.scene.line().handle(
      policy::ledger::Event{Source::kDra, policy::ledger::PreparedSeen{{{"u1", {2, 3}}}}});
  const object cpu = api.good("GET", "/v1/explain/cpu/2");
  CHECK(cpu.at("state") == "exclusive");
  CHECK(tests::text(cpu.at("owners")) ==
        R"([{"pod":"","pod_name":"","container":"claim-u1","name":"claim-u1","vm":false,)"
        R"("reported":false,"claim":"u1","basis":"dra","in_doubt":false,)"
        R"("text":"ResourceClaim u1"}])");
  CHECK(report_lines(cpu).ends_with("*dra: CPU 2 is prepared for ResourceClaim u1\n"));
  policy::ledger::ContainerSeen holder{.sandbox = "s2", .id = "c2", .spec = {}};
  holder.spec.cpus = CpuSet{2, 3};
  holder.claims = std::vector<policy::ledger::PreparedClaim>{{"u1", {2, 3}}};
  api.scene.line().handle(policy::ledger::Event{Source::kNri, holder});
  const object held = api.good("GET", "/v1/explain/cpu/2");
  CHECK(held.at("owners").as_array().size() == 1);
  CHECK(held.at("owners").as_array()[0].as_object().at("basis") == "dra");
  CHECK(held.at("owners").as_array()[0].as_object().at("container") == "c2");
  CHECK(report_lines(held).find("*dra: CPU 2 is prepared") != std::string::npos);
  const object free = api.good("GET", "/v1/explain/cpu/6");
  CHECK(report_lines(free).find("dra: CPU 6 is in no prepared claim\n") != std::string::npos);
}

TEST_CASE("a CPU changes hands: since when", "[api]") {
  Api api;
  api.play_pod();
  CHECK(api.good("GET", "/v1/explain/cpu/7").at("since").is_null());
  api.scene.clock.advance(std::chrono::seconds(60));
  api.good("DELETE", "/v1/sandboxes/s1/containers/c1");
  const object cpu = api.good("GET", "/v1/explain/cpu/4");
  CHECK(cpu.at("state") == "shared");
  CHECK(cpu.at("owners").as_array().empty());
  CHECK(cpu.at("since") == "1970-01-01T01:01:00.000Z");
  CHECK(report_lines(cpu).find("app") == std::string::npos);
}

TEST_CASE("a CPU that kubelet has taken away is its owner's until the runtime has updated it",
          "[api]") {
  Api api;
  api.play_pod();
  auto& line = api.scene.line();
  const auto update = [&](const CpuSet& cpus) { line.handle({seen(Source::kNri, cpus)}); };
  line.handle(claims({{"u1", "app", {4, 5}}}, CpuSet{0, 1, 2, 3}));
  update({4, 5});
  line.handle(claims({{"u1", "app", {4}}}, CpuSet{0, 1, 2, 3, 5}));
  const object kept = api.good("GET", "/v1/explain/cpu/5");
  CHECK(kept.at("state") == "exclusive");
  CHECK(report_lines(kept).starts_with("kubelet: CPU 5 is in the shared pool\n"));
  CHECK(report_lines(kept).find("*nri: container app of pod shop/cart may use CPUs 4-5\n") !=
        std::string::npos);
  CHECK(report_lines(api.good("GET", "/v1/explain/cpu/4")).starts_with("*kubelet: "));
  update({4});
  const object taken = api.good("GET", "/v1/explain/cpu/5");
  CHECK(taken.at("state") == "shared");
  CHECK(report_lines(taken).starts_with("*kubelet: CPU 5 is in the shared pool\n"));
}

TEST_CASE("what is not known of a CPU is said to be unknown", "[api]") {
  Api api;
  api.scene.line().expect(Source::kKubelet);
  api.scene.board().set_source(Source::kKubelet, {false, "cannot be read"});
  const object cpu = api.good("GET", "/v1/explain/cpu/4");
  CHECK(cpu.at("state") == "unknown");
  CHECK(cpu.at("since").is_null());
  CHECK(report_lines(cpu) ==
        "kubelet: has not reported: cannot be read\n"
        "pod-resources: not followed on this node\n");
  CHECK_FALSE(time_of(cpu, "kubelet"));
  CHECK(api.bad("GET", "/v1/explain/cpu/8") == "404 this machine has no CPU 8");
  CHECK(api.bad("GET", "/v1/explain/cpu/9999999") == "404 this machine has no CPU 9999999");
  CHECK(api.bad("GET", "/v1/explain/cpu/x") == "400 cpu: must be the number of a CPU");
  CHECK(api.bad("GET", "/v1/explain/cpu/-1") == "400 cpu: must be the number of a CPU");
}

TEST_CASE("two pods own a CPU, or kubelet alone names its owner", "[api]") {
  Api api;
  api.play_pod();
  api.good("PUT", "/v1/sandboxes/runc", R"({"pod_name":"shop/db","pod_uid":"u2"})");
  api.good("PUT", "/v1/sandboxes/runc/containers/x", R"({"cpus":"5-6","exclusive":true})");
  const object contested = api.good("GET", "/v1/explain/cpu/5");
  CHECK(contested.at("state") == "contested");
  CHECK(contested.at("owners").as_array().size() == 2);
  CHECK(report_lines(contested).find(
            "*api: container x of pod shop/db may use CPUs 5-6 and owns them\n") !=
        std::string::npos);
  api.scene.line().handle(claims({{"u1", "app", {4, 5}}, {"u9", "new", {7}}}, CpuSet{0, 1, 2, 3}));
  const object announced = api.good("GET", "/v1/explain/cpu/7");
  CHECK(announced.at("state") == "exclusive");
  CHECK(announced.at("owners").at(0).at("text") == "container new of pod u9");
  CHECK(announced.at("owners").at(0).at("basis") == "kubelet");
  CHECK(announced.at("owners").at(0).at("reported") == false);
}

TEST_CASE("on a node that gives out its CPUs, its own allocations decide", "[api]") {
  Api api;
  api.scene.board().set_source(Source::kManaged, {true, "gives containers their CPUs"});
  api.play_pod();
  policy::ledger::KubeletSeen allocated{CpuSet{0, 1, 2, 3, 6, 7}, {{{"u1", "app", {4, 5}}}}};
  api.scene.line().handle({{Source::kManaged, allocated}});
  const object owned = api.good("GET", "/v1/explain/cpu/4");
  CHECK(owned.at("state") == "exclusive");
  CHECK(owned.at("owners").at(0).at("basis") == "managed");
  CHECK(report_lines(owned).starts_with("*managed: "));
  const object shared = api.good("GET", "/v1/explain/cpu/0");
  CHECK(shared.at("state") == "shared");
  CHECK(shared.at("owners").as_array().empty());
  CHECK(report_lines(shared).starts_with("*managed: "));
}

TEST_CASE("what was known before a restart is said to be from then", "[api]") {
  Api api;
  api.play_pod();
  api.scene.start();
  api.scene.line().adopt();
  api::Router router(api.scene.line(), api.scene.requests(), api.scene.verifier(), api.feed);
  const auto response = router.handle({"GET", "/v1/explain/cpu/4", ""});
  const object cpu = tests::json::parse(response.body).as_object();
  CHECK(cpu.at("state") == "exclusive");
  CHECK(cpu.at("since").is_null());
  CHECK(cpu.at("owners").at(0).at("basis") == "before-restart");
  CHECK(report_lines(cpu).find("may use CPUs 4-5, as before the daemon's start\n") !=
        std::string::npos);
}
