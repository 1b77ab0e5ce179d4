// SPDX-License-Identifier: Apache-2.0
// The reporter between a daemon that answers and an API server that does not take what it writes.
#include "affinity/cluster/reporter.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "tests/scripted_server.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/cluster/cluster_scene.hpp"

using namespace ka;
using namespace ka::cluster;
using namespace std::chrono_literals;
using tests::http_response;
using tests::TlsAnswer;

namespace {

const std::string kTaken = http_response("200 OK", "{}");

/// What a daemon answers that is looked at once and verified once: one isolated pod.
std::vector<std::string> daemon_answers() {
  const std::string containers = R"([{"id":"c1","name":"app","cpus":"2-3","isolated":true}])";
  return {http_response("200 OK", "{}"),
          http_response("200 OK", R"({"sandboxes":[{"id":"s1","pod_uid":"a","drift":0,)"
                                  R"("containers":)" +
                                      containers + "}]}"),
          http_response("200 OK", R"({"drifts":[]})"),
          http_response("200 OK", R"({"enabled":true,"observe":false})"),
          http_response("200 OK", R"({"verdict":"ok"})")};
}

void answer(int peer, const std::string& text) {
  std::string request;
  char bytes[1024];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const auto got = ::read(peer, bytes, sizeof(bytes));
    if (got <= 0) return;
    request.append(bytes, static_cast<std::size_t>(got));
  }
  ::send(peer, text.data(), text.size(), MSG_NOSIGNAL);
}

std::vector<TlsAnswer> after_watch(const std::vector<std::string>& writes) {
  std::vector<TlsAnswer> all{
      {http_response("200 OK", tests::list_json("10", tests::pod_json("a", "3")))},
      {tests::http_stream("")}};
  for (const std::string& write : writes) all.push_back({write});
  return all;
}

struct Ended {};

struct Scene {
  /// `writes`: how the API server responds to each.
  explicit Scene(const std::vector<std::string>& writes,
                 std::vector<std::string> answers = daemon_answers(), bool classes = false,
                 std::optional<FeatureFile> feature_file = std::nullopt)
      : cluster(after_watch(writes)),
        daemon(cluster.dir.path() / "api.sock", std::move(answers), answer),
        reporter(
            {.interval = 1h, .pace = 4s, .marks_node = false, .reports_classes = classes},
            {cluster.clock, log, reader, cluster.server, watch,
             [](Reporter::Duration) { return Reporter::Duration(0); }, std::move(feature_file)}) {
    try {
      watch.run([](auto) { throw Ended(); });
    } catch (const Ended&) {
    }
  }

  /// Lets time pass, and gives the writes that were made meanwhile: "PATCH", "POST".
  std::vector<std::string> writes_in(std::chrono::seconds time) {
    const std::size_t before = cluster.targets().size();
    const auto end = cluster.clock.now() + time;
    while (cluster.clock.now() < end) cluster.clock.advance(std::min(reporter.step(), step));
    auto targets = cluster.targets();
    targets.erase(targets.begin(), targets.begin() + static_cast<std::ptrdiff_t>(before));
    for (std::string& target : targets) target.resize(target.find(' '));
    return targets;
  }

  static constexpr Reporter::Duration step = 1s;
  tests::ClusterScene cluster;
  std::string lines;
  log::Log log = tests::text_log(log::Level::kInfo, lines);
  PodWatch watch{cluster.server, log};
  tests::ScriptedServer daemon;
  DaemonReader reader{cluster.dir.path() / "api.sock"};
  Reporter reporter;
};

using Writes = std::vector<std::string>;

}  // namespace

TEST_CASE("a pod's condition and its event are written, once", "[cluster]") {
  Scene scene({kTaken, kTaken});
  CHECK(scene.writes_in(60s) == Writes{"PATCH", "POST"});
  CHECK(scene.lines.empty());
}

TEST_CASE("where NFD marks the node, its file says how the daemon is", "[cluster]") {
  const tests::TempDir dir;
  dir.write("feature", "");
  Scene scene({kTaken, kTaken}, daemon_answers(), false, FeatureFile(dir.path() / "feature"));
  CHECK(scene.writes_in(60s) == Writes{"PATCH", "POST"});
  const auto text = base::read_file(dir.path() / "feature");
  REQUIRE(text);
  CHECK(text->starts_with("kata-affinity.io/isolation=kept\n"));
  CHECK(scene.lines.empty());
  Scene missing({kTaken, kTaken}, daemon_answers(), false, FeatureFile("/none/feature"));
  CHECK(missing.writes_in(60s) == Writes{"PATCH", "POST"});
  CHECK(missing.lines.find("/none/feature: No such file") != std::string::npos);
}

TEST_CASE("the daemon gets the classes that pods request now, of containers that it has",
          "[cluster]") {
  const auto lines = [](const std::string& pools, const std::string& response) {
    auto answers = daemon_answers();
    answers.insert(answers.begin() + 3, {pools, response});
    Scene scene({kTaken, kTaken}, answers, true);
    scene.writes_in(10s);
    return scene.lines;
  };
  const std::string pools = http_response(
      "200 OK", R"({"containers":[{"pod":"s1","pod_uid":"a","name":"app","requested":"share"}]})");
  CHECK(lines(pools, http_response("200 OK", "{}"))
            .find("container app of pod a asks for no class") != std::string::npos);
  CHECK(lines(pools, http_response("404 Not Found", "{}")).empty());
  CHECK(lines(pools, http_response("403 Forbidden", "{}"))
            .find("/v1/class-requests/s1: the daemon responds 403") != std::string::npos);
  auto answers = daemon_answers();
  answers.insert(answers.begin() + 3, http_response("409 Conflict", "{}"));
  Scene follows({kTaken, kTaken}, answers, true);
  CHECK(follows.writes_in(60s) == Writes{"PATCH", "POST"});
  CHECK(follows.lines.empty());
}

TEST_CASE("a busy server is left alone for as long as it asks, and longer each time", "[cluster]") {
  const std::string busy = http_response("429 Too Many Requests", tests::status_json("slow down"),
                                         "Retry-After: 30\r\n");
  const std::string silent = http_response("503 Service Unavailable", "");
  Scene scene({busy, silent, kTaken, kTaken});
  CHECK(scene.writes_in(30s) == Writes{"PATCH"});
  CHECK(scene.lines.find("the API server responds 429: slow down") != std::string::npos);
  // The second pause is the back-off's own, 8 s.
  CHECK(scene.writes_in(8s) == Writes{"PATCH"});
  CHECK(scene.writes_in(60s) == Writes{"PATCH", "POST"});
}

TEST_CASE("a server that asks for hours is tried again after minutes", "[cluster]") {
  const std::string busy =
      http_response("429 Too Many Requests", "", "Retry-After: 4294967295\r\n");
  Scene scene({busy, kTaken, kTaken});
  CHECK(scene.writes_in(299s) == Writes{"PATCH"});
  CHECK(scene.writes_in(60s) == Writes{"PATCH", "POST"});
}

TEST_CASE("what is refused is not repeated, and what breaks off is", "[cluster]") {
  Scene refused({http_response("403 Forbidden", tests::status_json("no")), kTaken});
  CHECK(refused.writes_in(300s) == Writes{"PATCH"});
  CHECK(refused.lines.find("refused: the API server responds 403: no") != std::string::npos);
  Scene broken({"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "", kTaken, kTaken});
  CHECK(broken.writes_in(120s) == Writes{"PATCH", "PATCH", "PATCH", "POST"});
}

TEST_CASE("another's certificate: nothing is sent until it is the server again", "[cluster]") {
  Scene scene({kTaken, kTaken, kTaken, kTaken});
  const auto authorities = scene.cluster.dir.path() / "ca.crt";
  std::filesystem::rename(authorities, scene.cluster.dir.path() / "kept");
  tests::Certificate("IP:127.0.0.1").write(authorities);
  CHECK(scene.writes_in(10s).empty());
  CHECK(scene.lines.find("certificate of 127.0.0.1:") != std::string::npos);
  std::filesystem::rename(scene.cluster.dir.path() / "kept", authorities);
  CHECK(scene.writes_in(60s) == Writes{"PATCH", "POST"});
}
