// SPDX-License-Identifier: Apache-2.0
// kill -9 of the helper in the middle of each step: before and after each of its writes. The next
// helper completes what is still wanted, and leaves the node as it was when nothing is.
#include <array>
#include <filesystem>
#include <optional>

#include "tests/catch.hpp"
#include "tests/property/kills/difference.hpp"
#include "tests/property/kills/helper_scene.hpp"

using namespace ka;
using namespace ka::helper;
using namespace ka::tests;
using policy::CpuSet;

namespace {

enum class Stage { kNothing, kAll, kOther };

policy::Partition container(const WholeNode& node, bool is_unbalanced) {
  return {.vmm = node.key(300),
          .cpus = {6, 7},
          .vcpus = {},
          .of_container = true,
          .is_unbalanced = is_unbalanced};
}

RdtGroup gold(const WholeNode& node, const char* share, std::initializer_list<int> tids) {
  RdtGroup group{"gold", {.l3 = policy::parse_cache_share(share), .l2 = {}, .mba = 50}, {}};
  for (const int tid : tids) group.tasks.push_back(node.key(tid));
  return group;
}

/// Each of the helper's steps: all that a realtime VM pod, and other pods with annotations, want.
Wanted all_steps(const WholeNode& node) {
  policy::Partition realtime = node.of(100, {2, 3}, 5);
  realtime.full_power = true;
  return {.quiet = {2, 3},
          .interrupts = {6},
          .partitions = {realtime, container(node, false)},
          .power = R"([{"cpus":"6","latency":"20","governor":"performance"}])",
          .rdt = {gold(node, "50%", {101, 102})},
          .unlimited = {"/kubepods/pod1", kOne, kPodSlice, kContainerScope}};
}

/// The same pods have changed, another VM came.
Wanted other_steps(const WholeNode& node) {
  return {
      .quiet = {3, 4, 5},
      .interrupts = {7},
      .partitions = {{.vmm = node.key(100), .cpus = {3}, .vcpus = {node.key(102)}, .priority = 9},
                     node.of(200, {4, 5}, 1),
                     container(node, true)},
      .power = R"([{"cpus":"6","latency":"n/a","governor":""},)"
               R"({"cpus":"2","latency":"","governor":"performance"}])",
      .rdt = {gold(node, "25%", {102}), {"batch", {.mba = 20}, {node.key(201)}}},
      .unlimited = {"/kubepods/pod3", kContainer, kContainerScope}};
}

Wanted wanted(const WholeNode& node, Stage stage) {
  if (stage == Stage::kNothing) return {};
  return stage == Stage::kAll ? all_steps(node) : other_steps(node);
}

/// A node, its helper, and what there was at first.
struct Scene {
  Scene() : before(node.text()) { start(); }

  /// A helper that was killed, or none was there.
  void start() {
    helper.reset();
    helper.emplace(node);
  }
  void request(Stage stage) { helper->request(wanted(node, stage)); }
  /// False: it was killed.
  bool survives(Stage stage) {
    try {
      request(stage);
    } catch (const Killed&) {
      return false;
    }
    node.scissors.put_away();
    return true;
  }
  bool has_records() const { return !std::filesystem::is_empty(node.dir.path()); }
  void check_as_before() const {
    CHECK(difference(node.text(), before) == "");
    CHECK(difference(before, node.text()) == "");
    CHECK_FALSE(has_records());
    CHECK_FALSE(helper->holds());
  }

  WholeNode node;
  std::string before;
  std::optional<CutHelper> helper;
};

/// Kills a helper at each place of the way from one stage to the other, until it comes to the end
/// alive. `then` has a node with the next helper. Returns how many places there are.
template <typename Then>
int kill_everywhere(Stage from, Stage to, const Then& then) {
  for (int place = 0;; ++place) {
    CAPTURE(from, to, place);
    Scene scene;
    scene.request(from);
    scene.node.scissors.set(place);
    if (scene.survives(to)) return place;
    scene.start();
    then(scene);
  }
}

std::string planned(Stage from, Stage to) {
  Scene scene;
  scene.request(from);
  scene.request(to);
  CHECK(scene.helper->problems() == "");
  return scene.node.text();
}

using Way = std::pair<Stage, Stage>;
constexpr std::array kWays = {Way{Stage::kNothing, Stage::kAll}, Way{Stage::kAll, Stage::kOther},
                              Way{Stage::kOther, Stage::kAll}, Way{Stage::kAll, Stage::kNothing},
                              Way{Stage::kOther, Stage::kNothing}};
constexpr int kFewest = 40;  ///< places on each of these ways

}  // namespace

TEST_CASE("each step changes the node, and the way back leaves it as it was") {
  Scene scene;
  for (const Stage stage : {Stage::kAll, Stage::kOther}) {
    scene.request(stage);
    CHECK(scene.helper->problems() == "");
    CHECK(scene.node.text() != scene.before);
    CHECK(scene.has_records());
  }
  CHECK(planned(Stage::kAll, Stage::kOther) == planned(Stage::kNothing, Stage::kOther));
  CHECK(planned(Stage::kOther, Stage::kAll) == planned(Stage::kNothing, Stage::kAll));
  scene.request(Stage::kNothing);
  scene.check_as_before();
}

TEST_CASE("killed at any write, the next helper puts all back") {
  for (const auto& [from, to] : kWays) {
    const int places = kill_everywhere(from, to, [](Scene& scene) {
      scene.request(Stage::kNothing);
      scene.check_as_before();
    });
    CHECK(places > kFewest);
  }
}

TEST_CASE("killed at any write, the next helper brings all to what is still wanted") {
  for (const auto& [from, to] : kWays) {
    const std::string there = planned(from, to);
    kill_everywhere(from, to, [&, last = to](Scene& scene) {
      scene.helper->check();
      scene.request(last);
      CHECK(scene.helper->problems() == "");
      CHECK(difference(scene.node.text(), there) == "");
      CHECK(difference(there, scene.node.text()) == "");
      scene.request(Stage::kNothing);
      scene.check_as_before();
    });
  }
}

TEST_CASE("killed at any write, and its successor too, the third helper puts all back") {
  for (const auto& [from, to] : {kWays[0], kWays[1]}) {
    for (const int second : {0, 15, 30}) {
      CAPTURE(second);
      kill_everywhere(from, to, [&, first = from](Scene& scene) {
        scene.node.scissors.set(second);
        (void)scene.survives(first);
        scene.start();
        scene.request(Stage::kNothing);
        scene.check_as_before();
      });
    }
  }
}
