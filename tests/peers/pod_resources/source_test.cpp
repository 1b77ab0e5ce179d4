// SPDX-License-Identifier: Apache-2.0
// When kubelet is asked, and what comes of its answers.
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <functional>

#include "shim-ext/pod_resources/pod_resources_source.hpp"
#include "tests/catch.hpp"
#include "tests/http2_frames.hpp"
#include "tests/peers/pod_resources/scripted_kubelet.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/shim-ext/recording_node.hpp"

using namespace ka;
using namespace std::chrono_literals;
using policy::CpuSet;
using policy::ledger::Source;
using tests::ScriptedKubelet;
using Lines = std::vector<std::string>;

namespace {

/// By the machine's clock: the answers come from a thread.
struct Scene {
  explicit Scene(const std::filesystem::path& at = {})
      : socket(at.empty() ? dir.path() / "kubelet.sock" : at) {}

  void query() {
    bool answered = false;
    source.query_for_verify([&] { answered = true; });
    run_until([&] { return answered; });
  }

  void run_until(const std::function<bool()>& done) { tests::run_until(io, done); }

  const source::Status& status() { return node.statuses[Source::kPodResources]; }

  tests::TempDir dir;
  std::filesystem::path socket;
  boost::asio::io_context io{1};
  base::Clock clock;
  tests::RecordingNode node{clock};
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kInfo, log_lines);
  pod_resources::PodResourcesSource source{io, clock, socket, node, node, log};
};

std::vector<std::string> answers(const std::vector<int>& cpus) {
  return {tests::grpc_response(tests::list_message(cpus)),
          tests::grpc_response(tests::allocatable_message({2, 3, 4, 5, 6, 7}))};
}

}  // namespace

TEST_CASE("kubelet's answer is reported once, and its start is no longer waited for") {
  Scene scene;
  ScriptedKubelet kubelet(scene.socket, answers({4, 5}));
  scene.source.start();
  scene.run_until([&] { return scene.status().up; });
  CHECK(scene.node.drain() == Lines{"catch up within no deadline",
                                    "narrow within no deadline: pod-resources",
                                    "synced pod-resources", "finish "});
  CHECK(scene.status().text == "1 pod owns CPUs, of 2-7");
  CHECK(scene.node.known.exclusive() == CpuSet{4, 5});
}

TEST_CASE("an answer of less than two seconds ago serves verify") {
  Scene scene;
  ScriptedKubelet kubelet(scene.socket, answers({4}));
  scene.query();
  scene.query();
  CHECK(kubelet.connections() == 2);
}

TEST_CASE("a node without kubelet has no such source") {
  Scene scene;
  scene.query();
  CHECK(scene.node.statuses.empty());
  CHECK(scene.log_lines.empty());
}

TEST_CASE("rate limiting by kubelet is ignored, any other failure is logged once") {
  Scene scene;
  ScriptedKubelet kubelet(scene.socket, {tests::grpc_refusal("8", "rejected by rate limit")});
  scene.query();
  CHECK(scene.node.drain().empty());
  CHECK(scene.log_lines.find("rejected by rate limit") != std::string::npos);
}

TEST_CASE("an invalid response is an error within a bounded time") {
  for (const std::string& response :
       {std::string(), std::string("HTTP/1.1 400 Bad Request\r\n\r\n"),
        tests::grpc_response("\x0a\x7f"), tests::response_head()}) {
    Scene scene;
    ScriptedKubelet kubelet(scene.socket, {response});
    scene.query();
    CHECK_FALSE(scene.status().up);
    CHECK(scene.node.drain().empty());
  }
}

// Started by real_grpc with a server of gRPC's own.
TEST_CASE("gRPC's own server is understood", "[.real]") {
  const char* socket = std::getenv("KA_POD_RESOURCES_SOCKET");
  REQUIRE(socket != nullptr);
  Scene scene(socket);
  scene.query();
  CHECK(scene.status().text == "1 pod owns CPUs, of 2-7");
  CHECK(scene.node.known.exclusive() == CpuSet{4, 5});
}
