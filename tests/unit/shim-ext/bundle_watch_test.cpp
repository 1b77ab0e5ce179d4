// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/bundle_watch.hpp"

#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "shim-ext/kata/bundle.hpp"
#include "tests/catch.hpp"
#include "tests/failing_inotify.hpp"
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

const vmm::FoundShim kShim{vmm::ShimKind::kKata, {10, 1}};

struct Scene {
  Scene()
      : watch(io, clock, dir.path() / "tasks",
              {.shim_in_bundle = [this](const kata::Bundle& bundle) { return in_bundle(bundle); },
               .starting_shims =
                   [this] {
                     ++walks;
                     clock.advance(walk_time);
                     return running;
                   },
               .handle = [this](const auto& all) { return handle(all); }}) {}

  vmm::FoundShim in_bundle(const kata::Bundle& bundle) {
    lines.push_back(bundle.id + (bundle.pod_uid.empty() ? "" : ' ' + bundle.pod_name));
    return found.contains(bundle.id) ? kShim : vmm::FoundShim{};
  }

  std::set<std::filesystem::path> handle(const std::vector<BundleWatch::Found>& all) {
    ++handled;
    std::set<std::filesystem::path> done;
    for (const auto& one : all) {
      if (!refused.contains(one.bundle.id)) done.insert(one.bundle.directory);
    }
    return done;
  }

  void make_bundles(int number) const {
    for (int i = 0; i < number; ++i) {
      dir.write("tasks/k8s.io/s" + std::to_string(i) + "/config.json", config("sandbox"));
    }
  }

  void run_for(std::chrono::milliseconds time) { tests::run_for(io, clock, time); }

  Lines drain() {
    tests::run_for(io, clock, std::chrono::milliseconds(150));
    return std::exchange(lines, {});
  }

  tests::TempDir dir;
  boost::asio::io_context io;
  tests::TestClock clock;
  std::set<std::string> found;    ///< ids of sandboxes whose shim left its pid
  std::set<std::string> refused;  ///< of those whose shim cannot be handled yet
  vmm::StartingShims running;
  int walks = 0;  ///< over the processes of the node
  std::chrono::milliseconds walk_time{0};
  int handled = 0;
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

TEST_CASE("config.json is a regular file of 4 MiB at most, and others block nothing") {
  const tests::TempDir dir;
  const auto pod_of = [&](std::size_t size) {
    std::string text = config("sandbox");
    text.insert(1, size - text.size(), ' ');
    dir.write("s1/config.json", text);
    kata::Bundle bundle{.directory = dir.path() / "s1", .id = "s1"};
    const auto read = kata::read_bundle(bundle);
    return read ? bundle.pod_name : read.error().message;
  };
  const std::string file = (dir.path() / "s1/config.json").string();
  CHECK(pod_of(kata::kLargestSpec) == "shop/cart");
  CHECK(pod_of(kata::kLargestSpec + 1) == file + ": larger than 4194304 bytes");
  std::filesystem::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  kata::Bundle bundle{.directory = dir.path() / "s1", .id = "s1"};
  CHECK(kata::read_bundle(bundle).error().message == file + ": is not a regular file");
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

TEST_CASE("one walk over the processes is for all bundles that wait") {
  Scene scene;
  scene.watch.refresh();
  scene.make_bundles(50);
  scene.run_for(std::chrono::milliseconds(140));
  CHECK(scene.walks == 3);
  for (int i = 0; i < 50; ++i) scene.running["s" + std::to_string(i)] = kShim;
  scene.refused = {"s7"};
  scene.run_for(std::chrono::milliseconds(300));
  CHECK(scene.walks == 4);
  CHECK(scene.handled == 1);
  scene.lines.clear();
  scene.watch.refresh();
  CHECK(scene.lines == Lines{"s7 shop/cart"});
  scene.run_for(std::chrono::seconds(3));
  CHECK(scene.walks == static_cast<int>(BundleWatch::kSearches.size()));
}

TEST_CASE("however many bundles appear, most of the time is not for walks") {
  Scene scene;
  scene.walk_time = std::chrono::milliseconds(20);
  scene.watch.refresh();
  std::filesystem::create_directories(scene.dir.path() / "tasks/k8s.io");
  const auto begun = scene.clock.now();
  for (int i = 0; i < 200; ++i) {
    scene.dir.write("tasks/k8s.io/s" + std::to_string(i) + "/config.json", config("sandbox"));
    scene.run_for(std::chrono::milliseconds(5));
  }
  const auto passed = scene.clock.now() - begun;
  CHECK(scene.walks > 5);
  CHECK(scene.walks * scene.walk_time * (1 + BundleWatch::kRest) <= passed + scene.walk_time * 5);
}

TEST_CASE("a walk for a new bundle does not concern those that were there at the start") {
  Scene scene;
  scene.dir.write("tasks/k8s.io/old/config.json", config("sandbox"));
  scene.watch.refresh();
  scene.running["old"] = kShim;
  scene.make_bundles(1);
  scene.run_for(std::chrono::seconds(3));
  CHECK(scene.walks == static_cast<int>(BundleWatch::kSearches.size()));
  CHECK(scene.handled == 0);
}

TEST_CASE("the bundle of another runtime's shim is examined no more") {
  Scene scene;
  scene.watch.refresh();
  scene.make_bundles(1);
  scene.running["s0"] = {vmm::ShimKind::kOther, {}};
  scene.run_for(std::chrono::seconds(3));
  CHECK(scene.walks == 1);
  CHECK(scene.handled == 0);
}

TEST_CASE("without inotify bundles are examined at each refresh, until there is one again") {
  Scene scene;
  tests::InotifyFails fails(
      GENERATE(tests::FailingInotify{.instance = EMFILE}, tests::FailingInotify{.watch = ENOSPC}));
  scene.watch.refresh();
  CHECK(scene.watch.late());
  scene.dir.write("tasks/k8s.io/s1/config.json", config("sandbox"));
  CHECK(scene.drain().empty());
  scene.watch.refresh();
  CHECK(scene.drain().front() == "s1 shop/cart");

  fails.end();
  scene.watch.refresh();
  CHECK_FALSE(scene.watch.late());
  scene.drain();
  scene.found = {"s1"};
  scene.dir.write("tasks/k8s.io/s1/shim.pid", "10");
  CHECK(scene.drain() == Lines{"s1 shop/cart"});
}
