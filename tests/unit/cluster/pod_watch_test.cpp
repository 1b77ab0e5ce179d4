// SPDX-License-Identifier: Apache-2.0
// What is known of a node's pods while the API server breaks off, forgets, or is busy.
#include "affinity/cluster/pod_watch.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "tests/text_log.hpp"
#include "tests/unit/cluster/cluster_scene.hpp"

using namespace ka;
using namespace ka::cluster;
using namespace std::chrono_literals;
using tests::ClusterScene;
using tests::event_json;
using tests::http_response;
using tests::http_stream;
using tests::pod_json;
using tests::TlsAnswer;

namespace {

const std::string kList = http_response("200 OK", tests::list_json("10", pod_json("a", "3")));
const std::string kAdded = event_json("ADDED", pod_json("b", "11"));

struct Ended {};

struct Scene {
  explicit Scene(std::vector<TlsAnswer> answers) : cluster(std::move(answers)) {}

  /// Until it has paused so often; the run itself has no end.
  void run(std::size_t pauses) {
    try {
      watch.run([&](std::chrono::milliseconds time) {
        slept.push_back(time);
        if (slept.size() == pauses) throw Ended();
      });
    } catch (const Ended&) {
    }
  }

  /// "list", "watch 10": what the server was asked.
  std::vector<std::string> calls() const {
    std::vector<std::string> list;
    for (const std::string& target : cluster.targets()) {
      const auto at = target.find("resourceVersion=");
      const bool is_watch = target.find("watch=") != std::string::npos;
      list.push_back(is_watch ? "watch " + target.substr(at + 16, target.find('&', at) - at - 16)
                              : "list");
    }
    return list;
  }

  std::vector<std::string> uids() const {
    std::vector<std::string> list;
    const Pods pods = watch.pods();
    for (const auto& [uid, pod] : pods.all()) list.push_back(uid);
    return list;
  }

  ClusterScene cluster;
  std::string lines;
  log::Log log = tests::text_log(log::Level::kInfo, lines);
  PodWatch watch{cluster.server, log};
  std::vector<std::chrono::milliseconds> slept;
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("a watch that breaks off goes on where it was, with all that it told", "[cluster]") {
  Scene scene({{kList},
               {.text = http_stream(kAdded + R"({"type":"DEL)"), .is_cut = true},
               {http_stream(event_json("DELETED", pod_json("a", "12")))},
               {http_stream("")}});
  scene.run(1);
  CHECK(scene.uids() == std::vector<std::string>{"a", "b"});
  CHECK(scene.lines.find("pods of this node: ") != std::string::npos);
  scene.run(3);
  CHECK(scene.uids() == std::vector<std::string>{"b"});
  CHECK(scene.calls() == Calls{"list", "watch 10", "watch 11", "watch 12"});
}

TEST_CASE("where the server has forgotten the watch's place, pods are listed again", "[cluster]") {
  const std::string error = event_json("ERROR", R"({"kind":"Status","code":410,"message":"old"})");
  for (const std::string& gone :
       {http_response("410 Gone", tests::status_json("too old")), http_stream(error)}) {
    CAPTURE(gone);
    Scene scene({{kList},
                 {gone},
                 {http_response("200 OK", tests::list_json("20", pod_json("c", "15")))},
                 {http_stream("")}});
    scene.run(2);
    CHECK(scene.uids() == std::vector<std::string>{"c"});
    CHECK(scene.calls() == Calls{"list", "watch 10", "list", "watch 20"});
  }
}

TEST_CASE("what cannot be read may have been a change: pods are listed again", "[cluster]") {
  const std::string large(std::size_t{9} << 20, 'x');
  for (const std::string& bad : {std::string("{\n"), std::string("[]\n"), large}) {
    CAPTURE(bad.substr(0, 40));
    Scene scene({{kList}, {http_stream(kAdded + bad + kAdded)}, {kList}, {http_stream("")}});
    scene.run(2);
    CHECK(scene.calls() == Calls{"list", "watch 10", "list", "watch 10"});
    CHECK(scene.uids() == std::vector<std::string>{"a"});
  }
}

TEST_CASE("a busy server is asked ever more rarely, until it has answered", "[cluster]") {
  const std::string busy = http_response("429 Too Many Requests", "", "Retry-After: 1\r\n");
  Scene scene({{busy}, {busy}, {busy}, {kList}, {http_stream("")}, {busy}});
  scene.run(5);
  CHECK(scene.slept == std::vector<std::chrono::milliseconds>{1s, 2s, 4s, 1s, 1s});
  CHECK(scene.uids() == std::vector<std::string>{"a"});
}

TEST_CASE("a server that says how long is asked no sooner, but in hours at the latest in minutes",
          "[cluster]") {
  const std::string busy = http_response("429 Too Many Requests", "", "Retry-After: 30\r\n");
  const std::string hours = http_response("503 Away", "", "Retry-After: 36000\r\n");
  Scene scene({{busy}, {kList}, {hours}, {http_response("503 Away", "")}, {http_stream("")}});
  scene.run(4);
  CHECK(scene.slept == std::vector<std::chrono::milliseconds>{30s, 5min, 4s, 1s});
}

TEST_CASE("a list that is none replaces nothing", "[cluster]") {
  Scene scene({{kList},
               {http_response("410 Gone", "")},
               {http_response("200 OK", R"({"items":7})")},
               {.text = http_stream(tests::list_json("20")), .is_cut = true},
               {http_response("200 OK", tests::list_json("30"))},
               {http_stream("")}});
  scene.run(3);
  CHECK(scene.uids() == std::vector<std::string>{"a"});
  scene.run(4);
  CHECK(scene.uids().empty());
}
