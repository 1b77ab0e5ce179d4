// SPDX-License-Identifier: Apache-2.0
// What the runtime's calls make of the node where we hand out CPUs: 8 CPUs, 4 cores with 2 threads.
#include "affinity/managed/manager.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "affinity/managed/release.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "policy/facts/limits.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/temp_dir.hpp"
#include "tests/unit/managed/cgroup_scene.hpp"
#include "tests/unit/shim-ext/recording_node.hpp"

using namespace ka;
using policy::CpuSet;
using policy::managed::Books;
using policy::managed::CpuUse;
using policy::managed::Rules;
using tests::CgroupScene;
using tests::container;
using tests::Scene;
using tests::text;

TEST_CASE("a new owner narrows the others in the same answer, and its end widens them") {
  Scene scene;
  auto& manager = *scene.manager;
  REQUIRE(manager.create(container("free", 0)));
  CHECK(text(manager.updates()) == "free 0-7");
  CHECK(manager.updates().empty());
  REQUIRE(manager.create(container("own", 2)));
  CHECK(text(manager.updates()) == "free 0,2-4,6-7, own 1,5");
  CHECK(scene.owners() == "shared 0,2-4,6-7, uid-own/app 1,5");
  CHECK(scene.owners() == "unchanged");
  manager.end("own");
  CHECK(text(manager.updates()) == "free 0-7");
  CHECK(scene.owners() == "shared 0-7");
}

TEST_CASE("what was answered is on disk, and a container that ended meanwhile is collected") {
  Scene scene;
  REQUIRE(scene.manager->create(container("a", 2)));
  REQUIRE(scene.manager->create(container("b", 2)));
  const Books before = scene.manager->books();
  scene.restart();
  CHECK(scene.manager->books() == before);
  auto listed = container("b", 2);
  listed.cpus = before.cpus_of("b");
  scene.manager->synchronize({listed}, {"s-b"});
  CHECK(scene.manager->updates().empty());
  CHECK(scene.manager->books().exclusive() == before.cpus_of("b"));
  scene.restart();
  CHECK(scene.manager->books().exclusive() == before.cpus_of("b"));
}

TEST_CASE("without a disk no CPUs are given away, and shared containers are created") {
  Scene scene;
  if (::geteuid() == 0) {
    // Root ignores modes: a directory in the place of the file does as well.
    std::filesystem::create_directories(scene.dir.path() / "allocations" / "x");
  } else {
    ::chmod(scene.dir.path().c_str(), 0500);
  }
  const auto refused = scene.manager->create(container("own", 2));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("cannot record the allocation") != std::string::npos);
  CHECK(scene.manager->books().entries().empty());
  CHECK(scene.manager->create(container("free", 0)));
  CHECK_FALSE(scene.manager->unsaved().empty());
  ::chmod(scene.dir.path().c_str(), 0700);
}

TEST_CASE("a container that is refused leaves nothing behind, and its runtime hears why") {
  Scene scene({.refuse = true});
  const auto refused = scene.manager->create([] {
    auto wanted = container("greedy", 9);
    return wanted;
  }());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "kata-affinity: container app: 9 CPUs requested, 7 available");
  CHECK(scene.manager->updates().empty());
  CHECK(scene.board.counters().class_problems.at("not-enough") == 1);
}

TEST_CASE("a container whose CPUs someone else set is left to them") {
  Scene scene;
  auto foreign = container("foreign", 2);
  foreign.cpus = {2, 3};
  REQUIRE(scene.manager->create(foreign));
  CHECK(scene.manager->updates().empty());
  CHECK(scene.manager->books().entries().empty());
  SECTION("and no container gets these CPUs for itself") {
    REQUIRE(scene.manager->create(container("own", 2)));
    CHECK_FALSE(scene.manager->books().cpus_of("own").intersects(foreign.cpus));
  }
  SECTION("also when the runtime connects anew") {
    scene.manager->synchronize({foreign}, {});
    CHECK(scene.manager->updates().empty());
    CHECK_FALSE(scene.manager->books().available().intersects(foreign.cpus));
    scene.manager->synchronize({}, {});
    CHECK(scene.manager->books().available().contains(2));
  }
  SECTION("until it is gone") {
    scene.manager->forget(
        {{policy::ledger::Source::kNri, policy::ledger::ContainerGone{"s-foreign", "foreign"}}});
    CHECK(scene.manager->books().available().contains(2));
  }
}

TEST_CASE("what the runtime reports late or wrongly is replaced, and it gets the set once more") {
  Scene scene;
  REQUIRE(scene.manager->create(container("own", 2)));
  scene.manager->updates();
  policy::ledger::ContainerSeen seen{.sandbox = "s-own", .id = "own"};
  seen.spec.cpus = CpuSet{0, 1, 2};
  std::vector<policy::ledger::Event> events{{policy::ledger::Source::kNri, seen}};
  scene.manager->complete(events);
  REQUIRE(events.size() == 2);
  CHECK(events.front().source == policy::ledger::Source::kManaged);
  CHECK(*std::get<policy::ledger::ContainerSeen>(events.back().body).spec.cpus == CpuSet{1, 5});
  CHECK(text(scene.manager->updates()) == "own 1,5");
}

TEST_CASE("an operator changes the class of running containers, and all others follow") {
  Scene scene;
  REQUIRE(scene.manager->create(container("a", 2)));
  REQUIRE(scene.manager->create(container("b", 2)));
  REQUIRE(scene.manager->create(container("half", 0)));
  scene.manager->updates();
  CHECK_FALSE(scene.manager->change("s-c", std::nullopt, CpuUse::kNone));
  CHECK_FALSE(scene.manager->change("s-a", "side", CpuUse::kNone));
  const auto refused = scene.manager->change("s-half", std::nullopt, CpuUse::kExclusive);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "nothing changed: container app of shop/half: its CPU limit is not a number of whole CPUs; "
        "give it a limit of whole CPUs, or name one container of the pod");
  REQUIRE(scene.manager->change("s-a", "app", CpuUse::kNone));
  CHECK(scene.manager->books().cpus_of("a") == scene.manager->books().shared_pool());
  const auto lines = scene.node.drain();
  REQUIRE_FALSE(lines.empty());
  CHECK(lines.front().starts_with("narrow"));
  CHECK(lines.back() == "finish ");
}

TEST_CASE("CPUs that pods without NRI own are given to no one, and taken out of the shared pool") {
  Scene scene;
  REQUIRE(scene.manager->create(container("free", 0)));
  policy::ledger::ContainerSeen seen{.sandbox = "vm", .id = "vm-app"};
  seen.spec.cpus = CpuSet{2, 3};
  seen.exclusive = true;
  scene.node.known.apply({policy::ledger::Source::kApi, policy::ledger::PodSeen{.id = "vm"}});
  scene.node.known.apply({policy::ledger::Source::kApi, seen});
  REQUIRE(scene.manager->create(container("own", 4)));
  CHECK_FALSE(scene.manager->books().cpus_of("own").intersects(CpuSet{2, 3}));
  CHECK_FALSE(scene.manager->books().cpus_of("free").intersects(CpuSet{2, 3}));
  scene.node.known.apply({policy::ledger::Source::kApi, policy::ledger::PodGone{"vm"}});
  scene.manager->apply();
  CHECK(CpuSet{2, 3}.subset_of(scene.manager->books().shared_pool()));
}

TEST_CASE("what happened while the disk was full is kept, and what follows comes later") {
  Scene scene;
  REQUIRE(scene.manager->create(container("own", 2)));
  REQUIRE(scene.manager->create(container("other", 2)));
  const auto block = scene.dir.path() / "allocations";
  std::filesystem::remove(block);
  std::filesystem::create_directories(block / "x");
  auto cpus = ka::test::grid_cpus({});
  const CpuSet had = scene.manager->books().cpus_of("own");
  for (auto& cpu : cpus) cpu.online = cpu.cpu != had.first();
  scene.manager->change_machine(policy::Topology::make(cpus).value());
  CHECK(scene.manager->books().cpus_of("own").size() == 1);
  scene.manager->end("other");
  CHECK(scene.manager->books().cpus_of("own").size() == 1);
  CHECK(scene.manager->books().cpus_of("other").empty());
  CHECK_FALSE(scene.manager->unsaved().empty());
  std::filesystem::remove_all(block);
  scene.manager->apply();
  CHECK(scene.manager->books().cpus_of("own").size() == 2);
  CHECK(scene.manager->unsaved().empty());
}

TEST_CASE("a container that starts without having been created here is shared, and named") {
  Scene scene;
  REQUIRE(scene.manager->create(container("known", 2)));
  CHECK_FALSE(scene.manager->adopt(container("known", 2)));
  auto missed = container("missed", 2);
  CHECK(scene.manager->adopt(missed));
  CHECK(scene.manager->books().entries().at("missed").adopted);
  CHECK(scene.manager->books().cpus_of("missed") == scene.manager->books().shared_pool());
  CHECK(text(scene.manager->updates()).find("missed") != std::string::npos);
}

TEST_CASE("a pod's quality of service counts, however its container was reported") {
  Scene scene;
  auto burstable = container("b", 2);
  burstable.pod_cgroup = "kubepods-burstable-podb.slice";
  const auto own = container("own", 2);
  SECTION("with its creation") {
    REQUIRE(scene.manager->create(burstable));
    REQUIRE(scene.manager->create(own));
    CHECK(scene.manager->books().cpus_of("b").size() == 6);
  }
  SECTION("with its start") {
    CHECK(scene.manager->adopt(burstable));
    CHECK(scene.manager->adopt(own));
  }
  SECTION("in the runtime's list") {
    scene.manager->synchronize({burstable, own}, {"s-b", "s-own"});
  }
  const auto& entries = scene.manager->books().entries();
  CHECK_FALSE(entries.at("b").about.guaranteed);
  CHECK(entries.at("own").about.guaranteed);
}

TEST_CASE("a container with CPUs that are free keeps them where only its start is reported") {
  Scene scene;
  auto missed = container("missed", 2);
  missed.cpus = {3, 7};
  CHECK(scene.manager->adopt(missed));
  CHECK(scene.manager->books().cpus_of("missed") == CpuSet{3, 7});
  CHECK(scene.manager->books().exclusive() == CpuSet{3, 7});
}

TEST_CASE("ids that are none are refused, and more containers than a node may have") {
  Scene scene;
  auto strange = container("a", 0);
  strange.candidate.id = "../a";
  CHECK(scene.manager->create(strange).error().code == base::ErrorCode::kInvalid);
  CHECK_FALSE(scene.manager->adopt(strange));
  std::vector<nri::Described> all;
  for (std::size_t i = 1; i < policy::kMaxNodeContainers; ++i) {
    all.push_back(container('c' + std::to_string(i), 0));
  }
  scene.manager->synchronize(all, {});
  CHECK(scene.manager->create(container("last", 0)));
  CHECK(scene.manager->books().entries().size() == policy::kMaxNodeContainers);
  CHECK(scene.manager->create(container("more", 0)).error().code == base::ErrorCode::kConflict);
  all.push_back(container("last", 0));
  all.push_back(container("more", 0));
  scene.manager->synchronize(all, {});
  CHECK(scene.manager->books().entries().size() == policy::kMaxNodeContainers);
}

TEST_CASE("an id of the largest length is one, and one of a byte more is none") {
  Scene scene;
  auto longest = container("a", 0);
  longest.candidate.id = std::string(base::kMaxId, 'a');
  auto longer = longest;
  longer.candidate.id += 'a';
  CHECK(scene.manager->create(longest));
  CHECK(scene.manager->create(longer).error().code == base::ErrorCode::kInvalid);
  scene.manager->synchronize({longest, longer}, {});
  REQUIRE(scene.manager->books().entries().size() == 1);
  CHECK(scene.manager->books().entries().contains(longest.candidate.id));
}

TEST_CASE("cgroups are written for a turn of the loop, the rest when it comes round again") {
  CgroupScene scene({"a", "b", "c"});
  scene.cost = managed::Manager::kTurn;
  REQUIRE(scene.manager->create(container("own", 2)));
  scene.manager->apply();
  CHECK(scene.tree.writes.size() == 1);
  CHECK(scene.node.drain().back().starts_with("narrow"));
  for (std::size_t turn = 2; turn <= 3; ++turn) {
    std::exchange(scene.later, nullptr)();
    CHECK(scene.tree.writes.size() == turn);
  }
  CHECK_FALSE(scene.later);
  CHECK(scene.node.drain() == std::vector<std::string>{"finish "});
  CHECK(scene.tree.effective(scene.cgroup("c")) == scene.manager->books().shared_pool());
}

namespace {

/// A runtime that can be asked at any time, and answers when the test says so.
struct ScriptedRuntime final : nri::Updater {
  void update(const nri::Updates& updates, std::function<void()> done) override {
    requested = text(updates);
    answer = std::move(done);
  }
  std::string requested;
  std::function<void()> answer;
};

}  // namespace

TEST_CASE("a runtime that can be asked writes cgroups, and we what it has left") {
  CgroupScene scene({"a", "b"});
  scene.manager->updates();
  ScriptedRuntime runtime;
  scene.manager->set_updater(&runtime);
  CHECK(scene.node.statuses[policy::ledger::Source::kManaged].text.ends_with("its calls"));
  REQUIRE(scene.manager->create(container("own", 2)));
  const CpuSet pool = scene.manager->books().shared_pool();
  scene.manager->apply();
  CHECK(runtime.requested == "a 0,2-4,6-7, b 0,2-4,6-7, own 1,5");
  CHECK(scene.tree.writes.empty());
  REQUIRE(scene.tree.write(scene.mount() / scene.cgroup("a"), pool));
  scene.tree.writes.clear();
  runtime.answer();
  CHECK(scene.tree.writes.size() == 1);
  CHECK(scene.tree.effective(scene.cgroup("b")) == pool);
  CHECK(scene.node.drain().back() == "finish ");

  runtime.requested.clear();
  REQUIRE(scene.tree.write(scene.mount() / scene.cgroup("a"), CpuSet::range(0, 7)));
  scene.manager->apply();  // what the runtime has already is not requested again
  CHECK(runtime.requested.empty());
  CHECK(scene.tree.effective(scene.cgroup("a")) == pool);

  REQUIRE(scene.manager->change("s-own", std::nullopt, CpuUse::kNone));
  CHECK(runtime.requested == "a 0-7, b 0-7, own 0-7");
  runtime.requested.clear();
  scene.manager->set_updater(nullptr);
  REQUIRE(scene.manager->change("s-own", std::nullopt, CpuUse::kExclusive));
  CHECK(runtime.requested.empty());
  CHECK(scene.tree.effective(scene.cgroup("a")) == pool);
}

TEST_CASE("a container that runs and that the runtime has lost keeps its CPUs until it ends") {
  CgroupScene scene({"shared"});
  auto own = container("own", 2);
  own.cgroup = '/' + scene.cgroup("own");
  scene.tree.make(scene.cgroup("own"), CpuSet::range(0, 7));
  REQUIRE(scene.manager->create(own));
  const CpuSet owned = scene.manager->books().cpus_of("own");
  const std::string events = "cgroup/" + scene.cgroup("own") + "/cgroup.events";
  scene.dir.write(events, "populated 1\nfrozen 0\n");
  auto shared = container("shared", 0);
  shared.cgroup = '/' + scene.cgroup("shared");

  scene.manager->synchronize({shared}, {"s-shared"});
  CHECK(scene.manager->books().exclusive() == owned);
  CHECK(scene.manager->books().cpus_of("own") == owned);
  scene.manager->apply();
  CHECK(scene.manager->books().exclusive() == owned);
  SECTION("its end is seen in its cgroup") {
    scene.dir.write(events, "populated 0\nfrozen 0\n");
    scene.manager->apply();
    CHECK(scene.manager->books().exclusive().empty());
    CHECK_FALSE(scene.manager->books().entries().contains("own"));
  }
  SECTION("the next daemon keeps them, too") {
    scene.restart();
    scene.manager->synchronize({shared}, {"s-shared"});
    CHECK(scene.manager->books().cpus_of("own") == owned);
    CHECK(scene.manager->books().exclusive() == owned);
    scene.dir.write(events, "populated 0\nfrozen 0\n");
    scene.restart();
    scene.manager->synchronize({shared}, {"s-shared"});
    CHECK(scene.manager->books().exclusive().empty());
  }
  SECTION("the runtime has it again, and knows of its end") {
    scene.manager->synchronize({shared, own}, {"s-shared", "s-own"});
    scene.dir.write(events, "populated 0\n");
    scene.manager->apply();
    CHECK(scene.manager->books().exclusive() == owned);
    scene.manager->end("own");
    CHECK(scene.manager->books().exclusive().empty());
  }
  SECTION("where the cgroup is gone, it is gone") {
    std::filesystem::remove_all(scene.mount() / scene.cgroup("own"));
    scene.manager->synchronize({shared}, {"s-shared"});
    CHECK(scene.manager->books().exclusive().empty());
  }
  SECTION("unreadable is not gone") {
    std::filesystem::remove(scene.dir.path() / events);
    std::filesystem::create_directory(scene.dir.path() / events);
    scene.manager->apply();
    CHECK(scene.manager->books().exclusive() == owned);
  }
}

TEST_CASE("a container that is about to start is not left to the runtime") {
  CgroupScene scene({"a"});
  ScriptedRuntime runtime;
  scene.manager->set_updater(&runtime);
  REQUIRE(scene.manager->create(container("own", 2)));
  scene.manager->apply_at_once();
  CHECK(runtime.requested.empty());
  CHECK(scene.tree.effective(scene.cgroup("a")) == scene.manager->books().shared_pool());
}

TEST_CASE("crun's cgroup within the container's is written, too") {
  CgroupScene scene({"a"});
  scene.tree.make(scene.cgroup("a") + "/container", CpuSet::range(0, 7));
  REQUIRE(scene.manager->create(container("own", 2)));
  scene.manager->apply();
  const CpuSet pool = scene.manager->books().shared_pool();
  CHECK(scene.tree.configured(scene.cgroup("a")) == pool);
  CHECK(scene.tree.configured(scene.cgroup("a") + "/container") == pool);
}

TEST_CASE("memory nodes that someone else wrote are put right, and those of a class that ended") {
  CgroupScene scene({"shared"}, {.bind_memory = true}, {.sockets = 2, .cores_per_node = 2});
  scene.tree.make(scene.cgroup("own"), CpuSet::range(0, 7));
  auto own = container("own", 2);
  own.cgroup = '/' + scene.cgroup("own");
  own.needs.memory = {{policy::managed::kOrdinaryPage, 1}};
  REQUIRE(scene.manager->create(own));
  const policy::NodeSet node = scene.manager->books().entries().at("own").mems;
  REQUIRE(node.size() == 1);
  const auto mems = [&] {
    return *base::read_file(scene.mount() / scene.cgroup("own") / "cpuset.mems.effective");
  };
  REQUIRE(scene.tree.write_mems(scene.mount() / scene.cgroup("own"), {0, 1}));
  const auto differs = [&](const std::string& id) {
    const auto found = scene.manager->mismatch(id);
    REQUIRE(found);
    return *found;
  };
  CHECK(differs("own")->wanted.mems == node);
  scene.manager->apply();
  CHECK(mems() == policy::format_list(node) + '\n');
  CHECK_FALSE(differs("own"));
  CHECK_FALSE(differs("shared"));

  REQUIRE(scene.manager->change("s-own", std::nullopt, CpuUse::kNone));
  CHECK(mems() == "0-1\n");
}

TEST_CASE("a cgroup that cannot be read is not taken for one that has gone, nor for a good one") {
  CgroupScene scene({"a"});
  const std::filesystem::path directory = scene.mount() / CgroupScene::cgroup("a");
  scene.dir.write("cgroup/" + CgroupScene::cgroup("a") + "/cpuset.cpus", "x\n");
  CHECK_FALSE(scene.manager->mismatch("a"));
  std::filesystem::remove_all(directory);
  const auto gone = scene.manager->mismatch("a");
  REQUIRE(gone);
  CHECK_FALSE(*gone);
}

TEST_CASE("in another mode, containers that were given CPUs may run on all of them again") {
  Scene scene;
  REQUIRE(scene.manager->create(container("own", 2)));
  REQUIRE(scene.manager->create(container("gone", 0)));
  const auto opened = open_release(scene.dir, CpuSet::range(0, 7), {0});
  REQUIRE(opened);
  managed::Release& release = **opened;
  auto own = container("own", 2);
  own.cpus = {1, 5};
  auto foreign = container("foreign", 2);
  foreign.cpus = {2, 3};
  release.synchronize({own, foreign}, {});
  CHECK(text(release.updates()) == "own 0-7");
  // The connection ended before the runtime had that.
  CHECK(std::filesystem::exists(scene.dir.path() / "allocations"));
  release.synchronize({own, foreign}, {});
  CHECK(text(release.updates()) == "own 0-7");
  policy::ledger::ContainerSeen seen{.sandbox = "s-own", .id = "own"};
  seen.spec.cpus = CpuSet{1, 5};
  std::vector<policy::ledger::Event> events{{policy::ledger::Source::kNri, seen}};
  release.complete(events);
  CHECK(std::get<policy::ledger::ContainerSeen>(events.front().body).spec.cpus ==
        CpuSet::range(0, 7));
  CHECK(release.create(container("new", 2)));
  CHECK(release.updates().empty());
  CHECK_FALSE(std::filesystem::exists(scene.dir.path() / "allocations"));
  release.synchronize({own}, {});
  CHECK(release.updates().empty());
}

TEST_CASE(
    "in another mode, nothing is given back where nothing was given, or nobody knows who may") {
  Scene scene;
  const auto released = [&] { return open_release(scene.dir, CpuSet::range(0, 7), {0}); };
  CHECK(released().value() == nullptr);
  REQUIRE(scene.manager->create(container("own", 2)));
  scene.dir.write("cpu_manager_state", "{");
  CHECK_FALSE(released());
  scene.dir.write("cpu_manager_state", R"({"policyName":"none","checksum":0})");
  CHECK(released().value() != nullptr);
  scene.dir.write("allocations", "{");
  CHECK_FALSE(released());
}
