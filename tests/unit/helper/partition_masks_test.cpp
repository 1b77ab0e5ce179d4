// SPDX-License-Identifier: Apache-2.0
// Masks of kernel threads, which the kernel overwrites with partitions: given back.
#include "affinity/helper/partition_keeper.hpp"
#include "tests/catch.hpp"
#include "tests/unit/helper/partition_scene.hpp"

using namespace ka;
using namespace ka::helper;
using namespace ka::tests;
using policy::CpuSet;

TEST_CASE("masks that the kernel overwrites with a partition are given back, also after a kill") {
  PartitionScene scene;
  struct Killed {};
  auto& threads = scene.kernel_threads;
  threads.masks = {{"89 276", {4, 5, 6, 7}}, {"95 293", {1}}, {"99 1", {2}}, {"101 1", {2, 4}}};
  bool is_killed = false;
  scene.tree.before_write = [&](const std::string& path) {
    if (path != std::string(kOfOne) + "/cpuset.cpus.partition") return;
    const auto others =
        CpuSet::range(0, 7) - (threads.allowed.size() == 8 ? CpuSet{2, 3} : CpuSet{});
    threads.overwrite(others);
    if (is_killed) throw Killed{};
  };
  scene.keep({scene.of(100, {2, 3})});
  CHECK(threads.masks["89 276"] == CpuSet{4, 5, 6, 7});
  CHECK(threads.masks["95 293"] == CpuSet{1});
  CHECK(threads.masks["99 1"] == CpuSet{0, 1, 4, 5, 6, 7});
  CHECK(threads.masks["101 1"] == CpuSet{4});
  scene.keeper->check();
  is_killed = GENERATE(false, true);
  try {
    scene.keep({});
  } catch (const Killed&) {
    is_killed = false;
    scene.tree.before_write = {};
    scene.restart();
    scene.keep({});
  }
  CHECK(threads.masks["89 276"] == CpuSet{4, 5, 6, 7});
  CHECK(threads.masks["95 293"] == CpuSet{1});
  CHECK(threads.masks["99 1"] == CpuSet{2});
  CHECK(threads.masks["101 1"] == CpuSet{2, 4});
  CHECK(scene.is_as_before());
}

TEST_CASE("masks that others have changed since are as they left them after a VMM's end") {
  PartitionScene scene;
  auto& threads = scene.kernel_threads;
  threads.masks = {{"89 276", {1, 6}}};
  scene.tree.before_write = [&](const std::string& path) {
    if (path != std::string(kOfOne) + "/cpuset.cpus.partition") return;
    threads.overwrite(threads.allowed.size() == 8 ? CpuSet{0, 1, 6} : CpuSet::range(0, 7));
  };
  scene.keep({scene.of(100, {2, 3})});
  threads.masks["89 276"] = {6};
  scene.keeper->ended(scene.key(100));
  CHECK(threads.masks["89 276"] == CpuSet{6});
}

TEST_CASE("masks of threads that came later are given back after a VMM's end") {
  PartitionScene scene;
  auto& threads = scene.kernel_threads;
  scene.tree.before_write = [&](const std::string& path) {
    if (path != std::string(kOfOne) + "/cpuset.cpus.partition") return;
    threads.overwrite(threads.allowed.size() == 8 ? CpuSet{0, 1, 6} : CpuSet::range(0, 7));
  };
  scene.keep({scene.of(100, {2, 3})});
  threads.masks["99 400"] = {6};
  scene.keeper->check();
  scene.keeper->ended(scene.key(100));
  CHECK(threads.masks["99 400"] == CpuSet{6});
}
