// SPDX-License-Identifier: Apache-2.0
// Threads in groups of resctrl: made, kept, recorded, refused, and put back.
#include "affinity/helper/rdt_keeper.hpp"

#include "affinity/helper/rdt_service.hpp"
#include "tests/catch.hpp"
#include "tests/fake_node.hpp"
#include "tests/fake_resctrl.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace ka::helper;
using policy::ThreadKey;
using Names = std::set<std::string>;

namespace {

constexpr const char* kGold = "kata-affinity.gold";
constexpr const char* kBatch = "kata-affinity.batch";

policy::RdtShares shares(const char* l3, std::optional<int> mba = {}) {
  return {.l3 = policy::parse_cache_share(l3), .l2 = {}, .mba = mba};
}

/// A VMM (pid 100) of three vCPUs, threads 110 to 112, and a process that is none (pid 50).
struct Scene {
  Scene() {
    node.process(100, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
    node.process(50, 1, "sshd", "/usr/sbin/sshd");
    for (const int tid : {110, 111, 112}) start(tid);
    resctrl.start(50);
    restart();
  }

  void start(int tid, int start_time = 0) {
    node.thread(100, tid, "CPU " + std::to_string(tid - 110) + "/KVM", 1, start_time);
    resctrl.start(tid);
  }
  void end(int tid) {
    node.end_thread(100, tid);
    resctrl.end(tid);
  }
  ThreadKey key(int tid) const {
    const int pid = tid == 50 ? 50 : 100;
    return {pid, tid, base::ProcFs(node.proc()).stat(pid, tid)->start_time};
  }
  RecordFile<RdtRecords> file() const { return {dir.path(), "boot"}; }
  /// A helper that was killed and started again.
  void restart() {
    keeper.emplace(resctrl, VmmThreads(node.proc()), file(), logger);
    keeper->adopt();
  }
  void gold(std::initializer_list<int> tids, policy::RdtShares given = shares("50%")) {
    std::vector<ThreadKey> tasks;
    for (const int tid : tids) tasks.push_back(key(tid));
    keeper->keep({{"gold", given, tasks}});
  }
  std::string where() const {
    return resctrl.where(110) + ' ' + resctrl.where(111) + ' ' + resctrl.where(112);
  }
  bool has_file() const { return std::filesystem::exists(file().path()); }
  std::string problem() const { return keeper->state().groups.at(0).problem; }
  std::string problem_of_task() const { return keeper->state().groups.at(0).tasks.at(0).problem; }

  tests::FakeNode node;
  tests::FakeResctrl resctrl;
  tests::TempDir dir;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);
  std::optional<RdtKeeper> keeper;
};

}  // namespace

TEST_CASE("threads of a class are in its group, and nothing is left of it in the end") {
  Scene scene;
  scene.gold({110, 111}, shares("50%", 45));
  CHECK(scene.where() == "kata-affinity.gold kata-affinity.gold /");
  CHECK(scene.resctrl.schemata(kGold) == "    MB:0= 50;1= 50\n    L3:0=3f;1=3f\n");
  CHECK(scene.keeper->state().groups[0].schemata == "L3:0=3f;1=3f\nMB:0=50;1=50\n");
  CHECK(scene.problem().empty());
  CHECK(scene.problem_of_task().empty());
  CHECK_FALSE(scene.keeper->is_unfinished());

  scene.keeper->keep({});
  CHECK(scene.where() == "/ / /");
  CHECK(scene.resctrl.groups().empty());
  CHECK_FALSE(scene.keeper->holds());
  CHECK_FALSE(scene.has_file());
}

TEST_CASE("what is as wanted is not written again") {
  Scene scene;
  scene.gold({110});
  scene.resctrl.writes = 0;
  scene.gold({110});
  scene.keeper->check();
  CHECK(scene.resctrl.writes == 0);
}

TEST_CASE("these threads, and no others: hotplug, and another class") {
  Scene scene;
  scene.gold({110});
  scene.gold({111, 112});
  CHECK(scene.where() == "/ kata-affinity.gold kata-affinity.gold");
  scene.keeper->keep({{"batch", shares("0-1"), {scene.key(111)}}});
  CHECK(scene.where() == "/ kata-affinity.batch /");
  CHECK(scene.resctrl.groups() == Names{kBatch});
  scene.keeper->keep({});
  CHECK(scene.where() == "/ / /");
}

TEST_CASE("a thread goes back to the group that it was in, also to its monitor") {
  Scene scene;
  REQUIRE(scene.resctrl.make("theirs"));
  scene.resctrl.put(110, {"theirs", "m1"});
  scene.resctrl.put(111, {"", "m2"});
  scene.gold({110, 111});
  CHECK(scene.where() == "kata-affinity.gold kata-affinity.gold /");
  scene.keeper->keep({});
  CHECK(scene.where() == "theirs:m1 /:m2 /");
  CHECK(scene.resctrl.groups() == Names{"theirs"});

  scene.resctrl.put(110, {"theirs", ""});
  scene.gold({110});
  REQUIRE(scene.resctrl.remove("theirs"));
  scene.keeper->keep({});
  CHECK(scene.where() == "/ /:m2 /");
}

TEST_CASE("a thread that another program moves is moved again, and stays there after release") {
  Scene scene;
  REQUIRE(scene.resctrl.make("theirs"));
  scene.gold({110, 111});
  scene.resctrl.put(110, {"theirs", ""});
  scene.keeper->check();
  CHECK(scene.resctrl.where(110) == kGold);
  scene.resctrl.put(111, {"theirs", ""});
  scene.keeper->keep({});
  CHECK(scene.where() == "theirs theirs /");
}

TEST_CASE("schemata that another program changes, and a group that it removes, are repaired") {
  Scene scene;
  scene.gold({110});
  REQUIRE(scene.resctrl.write(std::string(kGold) + "/schemata", "L3:0=1;1=1\n"));
  scene.keeper->check();
  CHECK(scene.resctrl.schemata(kGold).find("L3:0=3f;1=3f") != std::string::npos);
  REQUIRE(scene.resctrl.remove(kGold));
  scene.keeper->check();
  CHECK(scene.resctrl.where(110) == kGold);
}

TEST_CASE("a helper that is killed leaves all in place, and the next one repairs and restores") {
  Scene scene;
  REQUIRE(scene.resctrl.make("theirs"));
  scene.resctrl.put(110, {"theirs", ""});
  scene.gold({110, 111});
  scene.restart();
  CHECK(scene.keeper->holds());
  scene.resctrl.put(111, {});
  scene.keeper->check();
  CHECK(scene.where() == "kata-affinity.gold kata-affinity.gold /");
  scene.restart();
  scene.keeper->keep({});
  CHECK(scene.where() == "theirs / /");
  CHECK(scene.resctrl.groups() == Names{"theirs"});
}

TEST_CASE("killed between the record and the write, it restores what was") {
  Scene scene;
  REQUIRE(scene.file().save({{{"gold", shares("50%")}}, {{scene.key(110), {"gold", {}}}}}));
  scene.restart();
  const bool is_made = GENERATE(false, true);
  if (is_made) REQUIRE(scene.resctrl.make(kGold));
  scene.keeper->keep({});
  CHECK(scene.where() == "/ / /");
  CHECK(scene.resctrl.groups().empty());
  CHECK_FALSE(scene.has_file());
}

TEST_CASE("what will be written is recorded before") {
  Scene scene;
  bool is_recorded = false;
  scene.resctrl.before_move = [&](int tid) {
    const auto records = scene.file().load();
    is_recorded = records && records->tasks.contains(scene.key(tid));
  };
  scene.gold({110});
  CHECK(is_recorded);
}

TEST_CASE("where it cannot be recorded nothing is made") {
  Scene scene;
  std::filesystem::remove_all(scene.dir.path());
  scene.gold({110});
  CHECK(scene.resctrl.writes == 0);
  CHECK(scene.problem() == "it is not made, because it cannot be recorded");
  CHECK(scene.keeper->is_unfinished());
  std::filesystem::create_directories(scene.dir.path());
}

TEST_CASE("a group of our name that is not ours is left alone") {
  Scene scene;
  REQUIRE(scene.resctrl.make(kGold));
  scene.gold({110});
  CHECK(scene.problem() == "there is a group kata-affinity.gold that the helper has not made");
  scene.keeper->keep({});
  CHECK(scene.resctrl.groups() == Names{kGold});
  CHECK(scene.where() == "/ / /");
}

TEST_CASE("without resctrl there is one reason for all") {
  Scene scene;
  scene.resctrl.machine.mounted = false;
  scene.gold({110});
  CHECK(scene.keeper->state().problem == "resctrl is not mounted at /sys/fs/resctrl");
  CHECK(scene.keeper->state().groups.size() == 1);
  CHECK(scene.resctrl.writes == 0);
  CHECK_FALSE(scene.has_file());
  scene.keeper->keep({});
  CHECK(scene.keeper->state().problem.empty());
}

TEST_CASE("when it is unmounted its groups are gone, and come back with it") {
  Scene scene;
  scene.gold({110});
  scene.resctrl.unmount();
  scene.keeper->check();
  CHECK_FALSE(scene.has_file());
  scene.resctrl.machine.mounted = true;
  scene.keeper->check();
  CHECK(scene.resctrl.where(110) == kGold);
}

TEST_CASE("what the machine does not have is named, and the rest holds") {
  Scene scene;
  scene.resctrl.become({.bandwidth = false});
  scene.keeper->keep(
      {{"gold", shares("50%", 50), {scene.key(110)}}, {"batch", shares("0-1"), {scene.key(111)}}});
  CHECK(scene.problem() == "resctrl does not control memory bandwidth here");
  CHECK(scene.where() == "/ kata-affinity.batch /");
}

TEST_CASE("bandwidth in other units than percent is refused") {
  Scene scene;
  const bool is_amd = GENERATE(false, true);
  if (is_amd) scene.resctrl.machine.linear = false;
  if (!is_amd) scene.resctrl.machine.options = "rw,mba_MBps";
  scene.gold({110}, shares("50%", 50));
  CHECK(scene.problem() == "memory bandwidth is not counted in percent here");
  CHECK(scene.resctrl.groups().empty());
}

TEST_CASE("hardware has few groups: one that is free again is used") {
  Scene scene;
  scene.resctrl.machine.groups = 2;
  scene.keeper->keep(
      {{"gold", shares("50%"), {scene.key(110)}}, {"batch", shares("0-1"), {scene.key(111)}}});
  CHECK(scene.problem().empty());
  CHECK(scene.keeper->state().groups[1].problem ==
        "no group is left: the machine has 2, with the root (kata-affinity.batch: No space left on "
        "device: Out of CLOSIDs)");
  CHECK(scene.where() == "kata-affinity.gold / /");
  scene.keeper->keep({{"batch", shares("0-1"), {scene.key(111)}}});
  CHECK(scene.where() == "/ kata-affinity.batch /");
}

TEST_CASE("a class that the kernel refuses has its words, and leaves no group behind") {
  Scene scene;
  scene.resctrl.refuses[std::string(kGold) + "/schemata"] = EINVAL;
  scene.gold({110});
  CHECK(scene.problem().find("Invalid argument") != std::string::npos);
  CHECK(scene.resctrl.groups().empty());
  CHECK(scene.where() == "/ / /");
  CHECK_FALSE(scene.has_file());
}

TEST_CASE("only threads of a known VMM are moved, and only the very thread that is meant") {
  Scene scene;
  scene.gold({50});
  CHECK(scene.problem_of_task() == "the thread is not of a known VMM");
  CHECK(scene.resctrl.where(50) == "/");
  ThreadKey other = scene.key(110);
  ++other.start_time;
  scene.keeper->keep({{"gold", shares("50%"), {other}}});
  CHECK(scene.problem_of_task() == "the thread has ended");
  CHECK(scene.where() == "/ / /");
}

TEST_CASE("a vCPU of Kata's shim is moved, its other threads and runc's shim are not") {
  Scene scene;
  const bool is_kata = GENERATE(true, false);
  const std::string shim = is_kata ? "containerd-shim-kata-v2" : "containerd-shim-runc-v2";
  scene.node.end_process(100);
  scene.node.process(100, 1, shim.substr(0, 15), "/usr/bin/" + shim);
  scene.node.thread(100, 110, "db_vcpu0");
  scene.node.thread(100, 111, "tokio");
  scene.gold({110, 111});
  CHECK(scene.resctrl.where(110) == (is_kata ? kGold : "/"));
  CHECK(scene.resctrl.where(111) == "/");
}

TEST_CASE("a thread that takes the number of one that ended goes to the group it was started in") {
  Scene scene;
  const ThreadKey meant = scene.key(110);
  const auto give_away = [&](int pid) {
    scene.resctrl.before_move = [&scene, pid](int) {
      scene.resctrl.before_move = {};
      scene.node.end_thread(100, 110);
      scene.node.thread(pid, 110, "stranger", 50, 777);
    };
  };
  REQUIRE(scene.resctrl.make("others"));
  SECTION("one of the same process") {
    scene.resctrl.put(100, {"others", {}});
    give_away(100);
    scene.keeper->keep({{"gold", shares("50%"), {meant}}});
    CHECK(scene.resctrl.where(110) == "others");
    CHECK(scene.problem_of_task() == "the thread has ended");
  }
  SECTION("one of another process") {
    scene.resctrl.put(50, {"others", {}});
    give_away(110);
    scene.keeper->keep({{"gold", shares("50%"), {meant}}});
    CHECK(scene.resctrl.where(110) == "others");
  }
  SECTION("one of another process, as the thread is put back") {
    scene.gold({110});
    scene.resctrl.put(50, {"others", {}});
    give_away(110);
    scene.keeper->keep({});
    CHECK(scene.resctrl.where(110) == "others");
  }
}

TEST_CASE("threads that end are forgotten") {
  Scene scene;
  scene.gold({110, 111});
  scene.end(110);
  scene.keeper->keep({});
  CHECK_FALSE(scene.keeper->holds());
  CHECK(scene.resctrl.groups().empty());
}

TEST_CASE("a record that cannot be read stops all writes, one of another boot none") {
  Scene scene;
  scene.dir.write("resctrl.json", "{");
  scene.restart();
  scene.gold({110});
  CHECK(scene.resctrl.writes == 0);
  CHECK(scene.keeper->state().problem.find("nothing is written") != std::string::npos);
  scene.dir.write("resctrl.json", to_text(RdtRecords{{{"gold", shares("50%")}}, {}},
                                          "5f0f1c2e-0000-4000-8000-000000000000"));
  scene.restart();
  CHECK_FALSE(scene.keeper->holds());
  scene.gold({110});
  CHECK(scene.resctrl.where(110) == kGold);
}

TEST_CASE("what cannot be put back now stays recorded") {
  Scene scene;
  scene.gold({110});
  scene.resctrl.refuses["tasks"] = EBUSY;
  scene.keeper->keep({});
  CHECK(scene.keeper->is_unfinished());
  CHECK(scene.has_file());
  scene.resctrl.refuses.clear();
  scene.keeper->check();
  CHECK(scene.where() == "/ / /");
  CHECK_FALSE(scene.has_file());
}
