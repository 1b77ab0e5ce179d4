// SPDX-License-Identifier: Apache-2.0
// grade = "quiet" as the API shows it.
#include <algorithm>

#include "tests/unit/api/scene.hpp"

using namespace ka;
using namespace ka::tests;
using policy::plan::NotQuiet;
using policy::plan::QuietObstacle;

namespace {

/// A pod of grade quiet on CPUs 4-5, and what is known of that grade.
struct QuietApi : Api {
  QuietApi() {
    play_pod();
    line::Options options = at_home();
    options.settings.grade = policy::plan::Grade::kQuiet;
    scene.line().configure(options);
  }

  void set(std::optional<QuietObstacle> obstacle, std::optional<policy::QuietState> state = {},
           std::string trouble = {}) {
    scene.board().set_quiet({.wanted = {4, 5},
                             .state = std::move(state),
                             .trouble = std::move(trouble),
                             .sandboxes = {{"s1", std::move(obstacle)}}});
  }

  bool counts(const std::string& line) {
    return call("GET", "/metrics").body.find('\n' + line + '\n') != std::string::npos;
  }

  /// Severity, text and remedy of what verify finds of the host; empty: nothing. There is no agent
  /// in the guest.
  std::string finding() {
    const json::object report = good("POST", "/v1/verify");
    for (const json::value& one : report.at("findings").as_array()) {
      if (one.at("invariant") != "grade" || one.at("reason") == "guest-not-quiet") continue;
      CHECK(report.at("verdict") == "degraded");
      CHECK(one.at("reason") == "not-quiet");
      CHECK(one.at("wanted") == "4-5");
      return std::string(one.at("severity").as_string()) + ": " +
             std::string(one.at("text").as_string()) + " -> " + text(one.at("remedy"));
    }
    return {};
  }
};

const policy::QuietState kState{
    .cpus = {4, 5},
    .kinds = {{.kind = "unit", .found = 4, .moved = 3, .left = {}, .left_total = 0},
              {.kind = "interrupt",
               .found = 30,
               .moved = 20,
               .left = {{"24: nvme0q4", {4}, "the kernel manages it"}},
               .left_total = 2}},
    .problem = {}};

}  // namespace

TEST_CASE("a quiet sandbox says so, and the node what stays", "[api]") {
  QuietApi api;
  api.set(std::nullopt, kState);
  const json::object sandbox = api.good("GET", "/v1/sandboxes/s1");
  CHECK(sandbox.at("grade") == "quiet");
  CHECK(sandbox.at("grade_problem") == "");
  CHECK(text(api.good("GET", "/v1/node").at("quiet")) ==
        R"({"wanted":"4-5","cpus":"4-5","kinds":[)"
        R"({"kind":"unit","found":4,"moved":3,"left":[],"left_total":0,"problem":""},)"
        R"({"kind":"interrupt","found":30,"moved":20,"left":[{"name":"24: nvme0q4","cpus":"4",)"
        R"("why":"the kernel manages it"}],"left_total":2,"problem":""}],"problem":""})");
  CHECK(api.counts("kata_affinity_sandboxes_not_quiet 0"));
  CHECK(api.counts("kata_affinity_quiet_left{kind=\"interrupt\"} 2"));
  CHECK(api.counts("kata_affinity_quiet_left{kind=\"unit\"} 0"));
  CHECK(api.finding().empty());
}

TEST_CASE("a partition of its vCPUs, or why there is none, and what it does not have", "[api]") {
  QuietApi api;
  CHECK(api.good("GET", "/v1/sandboxes/s1").at("partition").is_null());
  CHECK(api.counts("kata_affinity_partitions 0"));
  api.scene.board().set_partitions({{"s1", {{4, 5}, "", "", ""}}});
  CHECK(text(api.good("GET", "/v1/sandboxes/s1").at("partition")) ==
        R"({"cpus":"4-5","problem":"","realtime_problem":"","power_problem":""})");
  CHECK(api.counts("kata_affinity_partitions 1"));
  api.scene.board().set_partitions({{"s1", {{4, 5}, "no room", "no limit", "shared"}}});
  CHECK(
      text(api.good("GET", "/v1/sandboxes/s1").at("partition")) ==
      R"({"cpus":"4-5","problem":"no room","realtime_problem":"no limit","power_problem":"shared"})");
  CHECK(api.counts("kata_affinity_partitions 0"));
}

TEST_CASE("a realtime sandbox says so, or why it is quiet only", "[api]") {
  QuietApi api;
  line::Options options = at_home();
  options.settings.grade = policy::plan::Grade::kRealtime;
  api.scene.line().configure(options);
  api.set(std::nullopt, kState);
  api.scene.board().set_partitions({{"s1", {{4, 5}, "", "", ""}}});
  CHECK(api.good("GET", "/v1/sandboxes/s1").at("grade") == "realtime");
  CHECK(api.counts("kata_affinity_sandboxes_not_realtime 0"));
  api.scene.board().set_partitions({{"s1", {{4, 5}, "no room", "", ""}}});
  const json::object sandbox = api.good("GET", "/v1/sandboxes/s1");
  CHECK(sandbox.at("grade") == "quiet");
  CHECK(sandbox.at("grade_problem") == "not realtime: its vCPUs have no cpuset partition: no room");
  CHECK(api.counts("kata_affinity_sandboxes_not_realtime 1"));
}

TEST_CASE("what is not known of the host is not said to be nothing", "[api]") {
  QuietApi api;
  api.set(QuietObstacle{NotQuiet::kSilent, "no such socket"}, std::nullopt, "no such socket");
  CHECK(text(api.good("GET", "/v1/node").at("quiet")) ==
        R"({"wanted":"4-5","cpus":null,"kinds":[],"problem":"no such socket"})");
  CHECK(api.counts("kata_affinity_sandboxes_not_quiet 1"));
  CHECK(api.call("GET", "/metrics").body.find("kata_affinity_quiet_left{") == std::string::npos);
}

TEST_CASE("an exclusive container that is not quiet is degraded, with reason and remedy", "[api]") {
  QuietApi api;
  api.set(QuietObstacle{NotQuiet::kSilent, "no such socket"});
  const json::object sandbox = api.good("GET", "/v1/sandboxes/s1");
  CHECK(sandbox.at("grade") == "best-effort");
  CHECK(sandbox.at("grade_problem") ==
        "the helper (kata-affinity-helper) does not respond: no such socket");
  CHECK(api.finding() ==
        "degraded: container c1 (app) is not quiet: the helper (kata-affinity-helper) does not "
        "respond: no such socket -> \"systemctl enable --now kata-affinity-helper.socket\"");
  api.set(QuietObstacle{NotQuiet::kFloor});
  CHECK(api.finding().find("(quiet_floor)") != std::string::npos);
  api.good("POST", "/v1/release?id=s1");
  CHECK(api.finding().empty());
}

TEST_CASE("pods without a VM whose grade is quiet are listed, and counted where they are not",
          "[api]") {
  QuietApi api;
  CHECK(text(api.good("GET", "/v1/node").at("pods")) == "[]");
  api.good("PUT", "/v1/sandboxes/r1",
           R"({"pod_uid":"u2","pod_name":"shop/till","handler":"runc"})");
  api.good("PUT", "/v1/sandboxes/r1/containers/c1", R"({"cpus":"2-3","exclusive":true})");
  api.scene.board().set_quiet({.wanted = {},
                               .state = kState,
                               .trouble = {},
                               .sandboxes = {{"r1", QuietObstacle{NotQuiet::kSilent, "why"}}}});
  const std::string pods =
      R"([{"id":"r1","pod_uid":"u2","pod_name":"shop/till","handler":"runc","cpus":"2-3",)"
      R"("released":false,"grade":"best-effort","grade_problem":)"
      R"x("the helper (kata-affinity-helper) does not respond: why","partition":null}])x";
  CHECK(text(api.good("GET", "/v1/node").at("pods")) == pods);
  CHECK(text(api.good("GET", "/v1/sandboxes").at("pods")) == pods);
  CHECK(api.counts("kata_affinity_sandboxes_not_quiet 1"));
  api.good("POST", "/v1/release?id=r1");
  const json::object listed = api.good("GET", "/v1/sandboxes");
  CHECK(listed.at("pods").as_array().at(0).at("released") == true);
}

TEST_CASE("a grade is requested by annotation, and a refused request says why", "[api]") {
  Api api;
  api.play_pod();
  const auto request = [&api](const std::string& value) {
    api.good("PUT", "/v1/sandboxes/s1",
             R"({"annotations":{"kata-affinity.io/grade":)" + value + "}}");
    return text(api.good("GET", "/v1/sandboxes/s1").at("grade_problem"));
  };
  CHECK(
      request(R"("quiet")") ==
      R"("its annotation requests quiet, which allow_annotations or allow_grades does not allow")");
  CHECK(api.call("GET", "/metrics").body.find("kata_affinity_sandboxes_not_quiet 0\n") !=
        std::string::npos);
  const json::object report = api.good("POST", "/v1/verify");
  CHECK(text(report.at("findings")).find("\"reason\":\"grade-refused\"") != std::string::npos);
  CHECK(request(R"("loud")") == R"("its annotation names an unknown grade")");
  CHECK(request(R"("best-effort")") == R"("")");
  CHECK(api.bad("PUT", "/v1/sandboxes/s1", R"({"annotations":{"kata-affinity.io/grade":7}})")
            .starts_with("400 annotations"));
}

TEST_CASE("as many annotations as the limit are accepted, and one more is not", "[api]") {
  Api api;
  api.play_pod();
  const auto document = [](std::size_t count) {
    json::object annotations;
    for (std::size_t i = 0; i < count; ++i) {
      annotations["blockioclass.resource-policy.nri.io/container." + std::to_string(i)] = "fast";
    }
    return json::serialize(json::object{{"annotations", annotations}});
  };
  api.good("PUT", "/v1/sandboxes/s1", document(policy::kMaxAnnotations));
  CHECK(api.bad("PUT", "/v1/sandboxes/s1", document(policy::kMaxAnnotations + 1))
            .starts_with("400 annotations"));
}

TEST_CASE("a best-effort sandbox has no such finding", "[api]") {
  Api api;
  api.play_pod();
  const json::object sandbox = api.good("GET", "/v1/sandboxes/s1");
  CHECK(sandbox.at("grade") == "best-effort");
  CHECK(sandbox.at("grade_problem") == "");
  CHECK(text(api.good("POST", "/v1/verify").at("findings")).find("\"grade\"") == std::string::npos);
}
