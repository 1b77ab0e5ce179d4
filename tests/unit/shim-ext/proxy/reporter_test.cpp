// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/reporter.hpp"

#include "shim-ext/proxy/spec.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using namespace ka::proxy;

namespace {

using Reports = std::vector<Report>;

constexpr const char* kPod = "/v1/sandboxes/p1?source=proxy";
constexpr const char* kApp = "/v1/sandboxes/p1/containers/c1?source=proxy";
constexpr const char* kPodBody = R"({"pod_uid":"u-1","pod_name":"web/app-0","handler":"kata"})";
constexpr const char* kAppBody =
    R"({"name":"app","cpus":"2-3","mems":"0","quota":200000,"period":100000,"shares":2048})";

/// The bundles of a pod as containerd's CRI writes them.
struct Scene {
  Scene() {
    const std::string pod = R"("io.kubernetes.cri.sandbox-id":"p1",
      "io.kubernetes.cri.sandbox-uid":"u-1","io.kubernetes.cri.sandbox-namespace":"web",
      "io.kubernetes.cri.sandbox-name":"app-0","io.containerd.cri.runtime-handler":"kata",)";
    dir.write("p1/config.json", "{\"annotations\":{" + pod +
                                    R"("io.kubernetes.cri.container-type":"sandbox"},
      "linux":{"resources":{"cpu":{"shares":2,"cpus":"0-7"}}}})");
    dir.write("c1/config.json", "{\"ociVersion\":\"1.0.2\",\"annotations\":{" + pod +
                                    R"("io.kubernetes.cri.container-type":"container",
      "io.kubernetes.cri.container-name":"app"},"linux":{"resources":{"devices":[],
      "cpu":{"shares":2048,"quota":200000,"period":100000,"cpus":"2-3","mems":"0"}}}})");
  }

  Call create(const std::string& id) const {
    return {Verb::kCreate, id, (dir.path() / id).string(), {}};
  }
  static Call update(const std::string& json) { return {Verb::kUpdate, "c1", {}, json}; }

  tests::TempDir dir;
  Reporter reporter{dir.path()};
};

}  // namespace

TEST_CASE("the pause container reports the sandbox, and the VMM once it has a pid") {
  Scene scene;
  CHECK(scene.reporter.on_request(scene.create("p1")) == Reports{{"PUT", kPod, kPodBody}});
  CHECK(scene.reporter.on_response(scene.create("p1"), {true, 42}) ==
        Reports{{"PUT", kPod,
                 R"({"vmm_pid":42,"pod_uid":"u-1","pod_name":"web/app-0","handler":"kata"})"}});
}

TEST_CASE("a container's CPUs are reported before Create is forwarded, and after its reply") {
  Scene scene;
  const Reports both{{"PUT", kPod, kPodBody}, {"PUT", kApp, kAppBody}};
  CHECK(scene.reporter.on_request(scene.create("c1")) == both);
  CHECK(scene.reporter.on_response(scene.create("c1"), {true, 42}) == both);
  CHECK(scene.reporter.on_response({Verb::kStart, "c1", {}, {}}, {true, 42}) == both);
}

TEST_CASE("a container whose Create fails is reported as removed") {
  Scene scene;
  scene.reporter.on_request(scene.create("c1"));
  CHECK(scene.reporter.on_response(scene.create("c1"), {false, 0}) ==
        Reports{{"DELETE", kApp, ""}});
}

TEST_CASE("an update is reported at once, and reverted if the shim rejects it") {
  Scene scene;
  scene.reporter.on_request(scene.create("c1"));
  const Call update = Scene::update(R"({"cpu":{"cpus":"4-5","quota":-1}})");
  const Reports wanted{
      {"PUT", kApp, R"({"name":"app","cpus":"4-5","mems":"0","period":100000,"shares":2048})"}};
  CHECK(scene.reporter.on_request(update) == wanted);
  CHECK(scene.reporter.on_response(update, {false, 0}) == Reports{{"PUT", kApp, kAppBody}});
  CHECK(scene.reporter.on_request(update) == wanted);
  CHECK(scene.reporter.on_response(update, {true, 0}) == wanted);
}

TEST_CASE("values that an update omits or leaves empty are kept") {
  Scene scene;
  scene.reporter.on_request(scene.create("c1"));
  for (const char* json : {R"({"memory":{"limit":1}})", R"({"cpu":{"cpus":""}})"}) {
    CHECK(scene.reporter.on_request(Scene::update(json)) == Reports{{"PUT", kApp, kAppBody}});
  }
  for (const char* json :
       {"", "[]", "{", "7", R"({"cpu":{"cpus":[4]}})", R"({"cpu":{"quota":"1"}})"}) {
    CHECK(scene.reporter.on_request(Scene::update(json)).empty());
  }
}

TEST_CASE("Delete reports a container as removed, and a sandbox with its containers") {
  Scene scene;
  scene.reporter.on_request(scene.create("c1"));
  const Call container{Verb::kDelete, "c1", {}, {}};
  const Call sandbox{Verb::kDelete, "p1", {}, {}};
  CHECK(scene.reporter.on_request(container).empty());
  CHECK(scene.reporter.on_response(container, {false, 0}).empty());
  CHECK(scene.reporter.on_response(container, {true, 0}) == Reports{{"DELETE", kApp, ""}});
  CHECK(scene.reporter.on_response(sandbox, {true, 0}) == Reports{{"DELETE", kPod, ""}});
}

TEST_CASE("a container created before the proxy started is read from its bundle") {
  Scene scene;
  CHECK(
      scene.reporter.on_request(Scene::update(R"({"cpu":{"cpus":"6"}})")) ==
      Reports{
          {"PUT", kApp,
           R"({"name":"app","cpus":"6","mems":"0","quota":200000,"period":100000,"shares":2048})"}});
}

TEST_CASE("a container outside a pod is its own sandbox") {
  Scene scene;
  scene.dir.write("x/config.json", R"({"linux":{"resources":{"cpu":{"cpus":"1"}}}})");
  CHECK(scene.reporter.on_request(scene.create("x")) ==
        Reports{{"PUT", "/v1/sandboxes/x?source=proxy", "{}"},
                {"PUT", "/v1/sandboxes/x/containers/x?source=proxy", R"({"cpus":"1"})"}});
  CHECK(scene.reporter.on_response(scene.create("x"), {true, 9})[0].body == R"({"vmm_pid":9})");
}

TEST_CASE("nothing is reported without a readable bundle") {
  Scene scene;
  scene.dir.write("bad/config.json", "{\"annotations\":");
  CHECK(scene.reporter.on_request(scene.create("none")).empty());
  CHECK(scene.reporter.on_request(scene.create("bad")).empty());
  scene.dir.write("odd/config.json", R"({"annotations":[1],"linux":{"resources":7}})");
  CHECK(scene.reporter.on_request(scene.create("odd")).size() == 2);
}

TEST_CASE("config.json of the largest size is reported, one of a byte more is not") {
  Scene scene;
  std::string text = R"({"linux":{"resources":{"cpu":{"cpus":"1"}}}})";
  text.resize(proxy::kLargestSpec, ' ');
  scene.dir.write("full/config.json", text);
  CHECK(scene.reporter.on_request(scene.create("full")).size() == 2);
  scene.dir.write("over/config.json", text + ' ');
  CHECK(scene.reporter.on_request(scene.create("over")).empty());
}

TEST_CASE("the proxy reports its own process and its mask before narrowing") {
  Scene scene;
  Reporter reporter(scene.dir.path(), {77, policy::CpuSet::range(0, 7)});
  CHECK(reporter.on_request(scene.create("p1")) ==
        Reports{{"PUT", kPod,
                 R"({"pod_uid":"u-1","pod_name":"web/app-0","handler":"kata","proxy_pid":77,)"
                 R"("original_cpus":"0-7"})"}});
}

TEST_CASE("ids with unsafe characters are never part of a request") {
  Scene scene;
  const auto write_spec = [&scene](const std::string& folder, const std::string& sandbox) {
    scene.dir.write(folder + "/config.json",
                    R"({"annotations":{"io.kubernetes.cri.sandbox-id":")" + sandbox + "\"}}");
  };
  const std::string longest(128, 'a');
  write_spec("c2", longest);
  CHECK(scene.reporter.on_request(scene.create("c2"))
            .at(0)
            .path.starts_with("/v1/sandboxes/" + longest));
  for (const std::string& sandbox :
       {std::string(R"(p1 HTTP/1.1\r\n\r\nDELETE /v1/sandboxes/p1)"), std::string("../node"),
        std::string(".."), std::string("a/b"), longest + 'a'}) {
    CAPTURE(sandbox);
    write_spec("c3", sandbox);
    CHECK(scene.reporter.on_request(scene.create("c3")).empty());
  }
  CHECK(
      scene.reporter.on_request(scene.create("../" + scene.dir.path().filename().string() + "/c1"))
          .empty());
}
