// SPDX-License-Identifier: Apache-2.0
// vCPUs in a partition as real-time threads: made, kept, recorded, refused, and put back.
#include "affinity/helper/partition_keeper.hpp"

#include <sched.h>

#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/helper/partition_scene.hpp"

using namespace ka;
using namespace ka::helper;
using namespace ka::tests;

TEST_CASE("vCPUs in a partition are real-time threads, where that is requested, and no others") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3}, 7), scene.of(200, {4, 5})});
  CHECK(scene.priorities(100) == "077");
  CHECK(scene.priorities(200) == "000");
  CHECK(scene.scheduling.of(101) == realtime_policy(7));
  CHECK(scene.keeper->state().partitions[0].not_realtime.empty());
  scene.scheduling.writes = 0;
  scene.keeper->check();
  CHECK(scene.scheduling.writes == 0);
  scene.keep({scene.of(100, {2, 3})});
  CHECK(scene.priorities(100) == "000");
  CHECK(scene.tree.isolated() == "2-3");
}

TEST_CASE("a real-time thread is what it was when it leaves the partition") {
  PartitionScene scene;
  scene.scheduling.policies[101] = {3, 0};
  scene.keep({scene.of(100, {2, 3}, 1)});
  SECTION("as its vCPU is not dedicated any more") {
    scene.scheduling.before_write = [&](int tid) { CHECK(scene.tree.where(tid) == kOfOne); };
    scene.keep({{scene.key(100), {3}, {scene.key(102)}, 1, false}});
    CHECK(scene.priorities(100) == "001");
    scene.scheduling.before_write = {};
  }
  SECTION("as the sandbox is not quiet any more") {
    scene.keep({});
    CHECK(scene.priorities(100) == "000");
    CHECK(scene.is_as_before());
  }
  SECTION("after a helper that was killed") {
    scene.restart();
    scene.keep({});
    CHECK(scene.priorities(100) == "000");
  }
  CHECK(scene.scheduling.of(101) == SchedulingPolicy{3, 0});
}

TEST_CASE("without a partition there is no real-time thread") {
  PartitionScene scene;
  scene.tree.configure(kOne, {2, 3});
  scene.keep({scene.of(100, {2, 3}, 1)});
  CHECK(scene.priorities(100) == "000");
  CHECK(scene.scheduling.writes == 0);
}

TEST_CASE("what another program changes is repaired, what it made real-time before is left") {
  PartitionScene scene;
  scene.scheduling.policies[201] = {1, 30};
  scene.keep({scene.of(100, {2, 3}, 1), scene.of(200, {4, 5}, 1)});
  CHECK(scene.keeper->state().partitions[1].not_realtime ==
        "another program made thread 201 a real-time thread");
  CHECK(scene.scheduling.of(201) == SchedulingPolicy{1, 30});
  CHECK(scene.tree.isolated() == "2-5");
  scene.scheduling.policies[101] = {};
  scene.keeper->check();
  CHECK(scene.priorities(100) == "011");
  scene.keep({});
  CHECK(scene.scheduling.of(201) == SchedulingPolicy{1, 30});
}

namespace {

/// Another process gets number 101 with the next write to it; process 70, which has started it, has
/// this policy.
void give_away(PartitionScene& scene, const SchedulingPolicy& parents) {
  scene.node.thread(70, 70, "parent", 1);
  scene.scheduling.policies[70] = parents;
  scene.scheduling.before_write = [&scene, done = false](int tid) mutable {
    if (tid != 101 || std::exchange(done, true)) return;
    scene.node.end_thread(100, 101);
    scene.node.thread(101, 101, "stranger", 70);
  };
}

constexpr SchedulingPolicy kBatch{SCHED_BATCH, 0}, kRoundRobin{SCHED_RR, 30};

}  // namespace

TEST_CASE("a stranger that got a vCPU's number during the write has its own policy again") {
  for (const auto& [parents, own] : std::vector<std::pair<SchedulingPolicy, SchedulingPolicy>>{
           {{}, {}},
           {kBatch, kBatch},
           {kRoundRobin, kRoundRobin},
           {{SCHED_RR | SCHED_RESET_ON_FORK, 30}, {}},
           {{SCHED_BATCH | SCHED_RESET_ON_FORK, 0}, kBatch}}) {
    PartitionScene scene;
    give_away(scene, parents);
    scene.keep({scene.of(100, {2, 3}, 1)});
    CHECK(scene.scheduling.of(101) == own);
  }
}

TEST_CASE("a policy that a stranger has set for itself since stays") {
  PartitionScene scene;
  give_away(scene, {});
  scene.scheduling.after_write = [&](int tid) {
    if (tid == 101) scene.scheduling.policies[101] = kRoundRobin;
  };
  scene.keep({scene.of(100, {2, 3}, 1)});
  CHECK(scene.scheduling.of(101) == kRoundRobin);
}

TEST_CASE("a stranger that a vCPU's old policy reached has its own again") {
  PartitionScene scene;
  scene.keep({scene.of(100, {2, 3}, 1)});
  give_away(scene, kRoundRobin);
  scene.keep({});
  CHECK(scene.scheduling.of(101) == kRoundRobin);
  CHECK(scene.scheduling.of(102) == SchedulingPolicy{});
}

TEST_CASE("a policy that reached a thread that cannot be seen is undone when it can") {
  PartitionScene scene;
  give_away(scene, kBatch);
  scene.scheduling.after_write = [&](int tid) {
    if (tid == 101) scene.node.write("proc/100/task/101/stat", "");
  };
  scene.keep({scene.of(100, {2, 3}, 1)});
  REQUIRE(scene.scheduling.of(101) == realtime_policy(1));
  CHECK_FALSE(scene.keeper->state().partitions[0].not_realtime.empty());
  scene.scheduling.after_write = nullptr;
  scene.node.end_thread(100, 101);
  scene.node.thread(101, 101, "stranger", 70);
  scene.keeper->check();
  CHECK(scene.scheduling.of(101) == kBatch);
}

TEST_CASE("a kernel that refuses real-time threads leaves the partition") {
  PartitionScene scene;
  scene.scheduling.refused[102] = EPERM;
  scene.keep({scene.of(100, {2, 3}, 1)});
  CHECK(scene.keeper->state().partitions[0].not_realtime.find("set") == 0);
  CHECK(scene.tree.isolated() == "2-3");
  scene.keep({});
  CHECK(scene.priorities(100) == "000");
}

TEST_CASE("what a thread had is recorded before it becomes a real-time thread") {
  PartitionScene scene;
  bool all = true;
  scene.scheduling.before_write = [&](int tid) {
    const auto records = scene.file().load();
    if (!records || !records->partitions.at(scene.key(100)).scheduling.contains(scene.key(tid))) {
      all = false;
    }
  };
  scene.keep({scene.of(100, {2, 3}, 1)});
  CHECK(all);
}

TEST_CASE("where the kernel would leave others nothing there is no real-time thread") {
  PartitionScene scene;
  scene.scheduling.limited = false;
  scene.keep({scene.of(100, {2, 3}, 1)});
  CHECK(scene.priorities(100) == "000");
  CHECK(scene.tree.isolated() == "2-3");
  CHECK(scene.keeper->state().partitions[0].not_realtime.find("leaves other tasks nothing") !=
        std::string::npos);
}
