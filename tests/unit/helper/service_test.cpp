// SPDX-License-Identifier: Apache-2.0
// The helper's verbs, and what it refuses whoever asks.
#include "affinity/helper/service.hpp"

#include "affinity/helper/record_file.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace ka;
using namespace ka::helper;
using policy::CpuSet;

namespace {

/// Cores 0,4 1,5 2,6 3,7.
const policy::Topology kMachine = scenario::machine(1, 4, 2);

/// kubelet has given CPUs 4-7 to somebody.
constexpr const char* kKubeletState =
    R"({"policyName":"static","defaultCpuSet":"0-3","entries":{"p":{"c":"4-7"}},"checksum":1})";

struct Scene {
  tests::TempDir dir;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);
  Limits limits;
  Keeper keeper{{}, RecordFile<MaskRecords>(dir.path(), "boot"), logger};
  Service service{keeper,
                  kMachine,
                  {[this]() -> base::Result<Limits> { return limits; },
                   [](const CpuSet&) { return std::nullopt; }}};

  http::Response call(const std::string& method, const std::string& path,
                      const std::string& body = {}) {
    return respond({{Service::kPath, service.verb()}},
                   {.method = method, .target = path, .body = body});
  }
  http::Response post(const std::string& body) { return call("POST", "/v1/quiet", body); }
  std::string refused(const std::string& body) {
    const http::Response response = post(body);
    CHECK(response.status == 400);
    return response.body;
  }
};

}  // namespace

TEST_CASE("the host is kept off what is requested") {
  Scene scene;
  CHECK(scene.post(R"({"cpus": "1,5"})").body ==
        "{\"cpus\":\"1,5\",\"kinds\":[],\"problem\":\"\"}\n");
  CHECK(scene.call("GET", "/v1/quiet").body ==
        "{\"cpus\":\"1,5\",\"kinds\":[],\"problem\":\"\"}\n");
  CHECK(scene.post(R"({"cpus": ""})").status == 200);
  CHECK(scene.keeper.quiet().empty());
}

TEST_CASE("interrupts alone are kept off other CPUs, within the same limits") {
  Scene scene;
  CHECK(scene.post(R"({"cpus":"1","interrupts":"1,5"})").body ==
        "{\"cpus\":\"1\",\"kinds\":[],\"problem\":\"\",\"interrupts\":\"5\"}\n");
  scene.dir.write("state", kKubeletState);
  scene.limits.kubelet_state = scene.dir.path() / "state";
  CHECK(scene.post(R"({"cpus":"","interrupts":"3-4"})").status == 200);
  CHECK(scene.keeper.interrupts() == CpuSet{4});
  scene.limits = {.floor = {7}, .kubelet_state = {}};
  CHECK(scene.post(R"({"cpus":"4","interrupts":"6-7"})").status == 200);
  CHECK(scene.keeper.quiet() == CpuSet{4});
  CHECK(scene.keeper.interrupts().empty());
  scene.post(R"({"cpus":"4","interrupts":"6"})");
  scene.service.check();
  CHECK(scene.keeper.interrupts() == CpuSet{6});
  scene.limits.floor = {6};
  scene.service.check();
  CHECK(scene.keeper.interrupts().empty());
}

TEST_CASE("bad requests change nothing") {
  Scene scene;
  scene.post(R"({"cpus": "1"})");
  for (const char* body : {"", "{", "[]", "{}", R"({"cpus": 1})", R"({"cpus": "a"})",
                           R"({"cpus": "1", "x": 1})", R"({"cpus": "8"})", R"({"cpus": "0-7"})"}) {
    CAPTURE(body);
    scene.refused(body);
    CHECK(scene.keeper.quiet() == CpuSet{1});
  }
  CHECK(scene.call("PUT", "/v1/quiet").status == 405);
  CHECK(scene.call("GET", "/v1/x").status == 404);
}

TEST_CASE("the host keeps its floor, and one core in any case") {
  Scene scene;
  scene.limits.floor = {0, 4};
  CHECK(scene.refused(R"({"cpus": "3-4"})").find("4 is kept for the host") != std::string::npos);
  CHECK(scene.post(R"({"cpus": "1-3,5-7"})").status == 200);
  scene.limits.floor = {};
  CHECK(scene.refused(R"({"cpus": "0-3"})").find("no core left") != std::string::npos);
  CHECK(scene.post(R"({"cpus": "0-2,4-6"})").status == 200);
}

TEST_CASE("under kubelet's static policy nothing of its shared pool is taken") {
  Scene scene;
  scene.dir.write("kubelet", kKubeletState);
  scene.limits.kubelet_state = scene.dir.path() / "kubelet";
  scene.post(R"({"cpus": "3-5"})");
  CHECK(scene.keeper.quiet() == CpuSet{4, 5});

  scene.dir.write(
      "kubelet",
      R"({"policyName":"static","defaultCpuSet":"0-4","entries":{"p":{"c":"5-7"}},"checksum":1})");
  scene.service.check();
  CHECK(scene.keeper.quiet() == CpuSet{5});
}

TEST_CASE("CPUs that kubelet keeps out of its shared pool are not taken either") {
  Scene scene;
  scene.dir.write(
      "kubelet",
      R"({"policyName":"static","defaultCpuSet":"2-3","entries":{"p":{"c":"4-6"}},"checksum":1})");
  scene.limits.kubelet_state = scene.dir.path() / "kubelet";
  scene.post(R"({"cpus": "0-7"})");
  CHECK(scene.keeper.quiet() == CpuSet{4, 5, 6});
}

TEST_CASE("while kubelet's file cannot be read nothing is taken, and nothing given back") {
  Scene scene;
  scene.post(R"({"cpus": "5"})");
  scene.dir.write("kubelet", "?");
  scene.limits.kubelet_state = scene.dir.path() / "kubelet";
  CHECK(scene.post(R"({"cpus": "6"})").status != 200);
  scene.service.check();
  CHECK(scene.keeper.quiet() == CpuSet{5});
  CHECK(scene.post(R"({"cpus": ""})").status == 200);
}

TEST_CASE("at most 64 masks of a kind are listed, and all are counted") {
  State state{{2}, {{"interrupt", 100, 0, {}, {}}}, {}};
  for (int i = 0; i < 100; ++i) state.kinds[0].left.push_back({"IRQ", {2}, "why"});
  const std::string text = to_text(state);
  CHECK(text.find("\"left_total\":100") != std::string::npos);
  CHECK(std::ranges::count(text, 'Q') == 64);
}
