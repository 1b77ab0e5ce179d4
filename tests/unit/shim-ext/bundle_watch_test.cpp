// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/bundle_watch.hpp"

#include <boost/asio/io_context.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using kata::BundleWatch;
using Lines = std::vector<std::string>;

namespace {

std::string config(const std::string& type) {
  return R"({"ociVersion":"1.1.0","annotations":{"io.kubernetes.cri.container-type":")" + type +
         R"(","io.kubernetes.cri.sandbox-uid":"u1","io.kubernetes.cri.sandbox-name":"cart",)" +
         R"("io.kubernetes.cri.sandbox-namespace":"shop"}})";
}

struct Scene {
  Scene()
      : watch(io, clock, dir.path() / "tasks", [this](const kata::Bundle& bundle, auto effort) {
          const bool whole_node = effort == BundleWatch::Effort::kNode;
          const std::string pod = bundle.pod_uid.empty() ? "" : ' ' + bundle.pod_name;
          if (whole_node) ++walks;
          if (!whole_node) lines.push_back(bundle.id + pod);
          return found.contains(bundle.id);
        }) {}

  Lines drain() {
    tests::run_for(io, clock, std::chrono::milliseconds(150));
    return std::exchange(lines, {});
  }

  tests::TempDir dir;
  boost::asio::io_context io;
  tests::TestClock clock;
  std::set<std::string> found;  ///< ids of sandboxes whose shim is known
  int walks = 0;                ///< over the processes of the node
  Lines lines;
  BundleWatch watch;
};

}  // namespace

TEST_CASE("a bundle is examined when created, and when something is written there") {
  Scene scene;
  scene.watch.refresh();
  std::filesystem::create_directories(scene.dir.path() / "tasks/k8s.io/s1");
  CHECK_FALSE(scene.drain().empty());
  scene.dir.write("tasks/k8s.io/s1/config.json", config("sandbox").substr(0, 90));
  CHECK(scene.drain().back() == "s1");
  scene.dir.write("tasks/k8s.io/s1/config.json", config("sandbox"));
  CHECK(scene.drain().back() == "s1 shop/cart");
  scene.found = {"s1"};
  scene.dir.write("tasks/k8s.io/s1/shim.pid", "10");
  CHECK(scene.drain() == Lines{"s1 shop/cart"});
  const int walks = scene.walks;
  scene.dir.write("tasks/k8s.io/s1/address", "unix:///s");
  CHECK(scene.drain().empty());
  CHECK(scene.walks == walks);
}

TEST_CASE("a shim without a pid file is searched among all processes, a few times") {
  Scene scene;
  scene.watch.refresh();
  scene.dir.write("tasks/k8s.io/s1/config.json", config("sandbox"));
  tests::run_for(scene.io, scene.clock, std::chrono::milliseconds(140));
  CHECK(scene.walks == 3);  // after 10, 40 and 140 ms
  tests::run_for(scene.io, scene.clock, std::chrono::seconds(3));
  CHECK(scene.walks == static_cast<int>(BundleWatch::kSearches.size()));
}

TEST_CASE("containers of a sandbox have no shim of their own") {
  Scene scene;
  std::filesystem::create_directories(scene.dir.path() / "tasks/k8s.io");
  scene.watch.refresh();
  scene.dir.write("fresh/config.json", config("container"));
  std::filesystem::rename(scene.dir.path() / "fresh", scene.dir.path() / "tasks/k8s.io/c1");
  CHECK(scene.drain().empty());
  CHECK(scene.walks == 0);
}

TEST_CASE("existing bundles are examined by their content") {
  Scene scene;
  scene.dir.write("tasks/k8s.io/s1/config.json", config("sandbox"));
  scene.watch.refresh();
  CHECK(scene.drain() == Lines{"s1 shop/cart"});
  CHECK(scene.walks == 0);
}

TEST_CASE("a sandbox recreated under the same name is examined again") {
  Scene scene;
  scene.found = {"s1"};
  scene.dir.write("tasks/k8s.io/s1/config.json", config("sandbox"));
  scene.watch.refresh();
  CHECK(scene.drain().size() == 1);
  std::filesystem::remove_all(scene.dir.path() / "tasks/k8s.io/s1");
  CHECK(scene.drain().empty());
  scene.dir.write("tasks/k8s.io/s1/config.json", config("sandbox"));
  CHECK_FALSE(scene.drain().empty());
}
