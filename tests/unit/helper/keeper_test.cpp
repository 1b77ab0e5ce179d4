// SPDX-License-Identifier: Apache-2.0
// Keeping a host off CPUs: what is written, recorded, left, and put back.
#include "affinity/helper/keeper.hpp"

#include <cerrno>
#include <optional>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace ka::helper;
using base::ErrorCode;
using policy::CpuSet;

namespace {

/// One kind of mask, as the kernel would have them.
struct Host {
  std::map<std::string, CpuSet> masks;
  std::map<std::string, std::string> fixed;
  std::map<std::string, base::Error> refuses;
  std::optional<base::Error> unreadable;
  std::string_view out_of_reach;
  bool elsewhere = false;
  bool is_of_interrupts = false;
  bool is_late = false;  ///< what is written comes with pass()
  std::map<std::string, CpuSet> later;
  int writes = 0;
  std::function<void()> before_write;

  void pass() {
    for (auto& [name, cpus] : later) masks[name] = std::move(cpus);
    later.clear();
  }
};

class FakeMasks final : public HostMasks {
 public:
  explicit FakeMasks(Host& host, std::string_view kind = "fake", std::string_view born_by = {})
      : host_(host), kind_(kind), born_by_(born_by) {}

  std::string_view kind() const override { return kind_; }
  std::string_view born_by() const override { return born_by_; }
  std::string_view out_of_reach() const override { return host_.out_of_reach; }
  bool is_of_interrupts() const override { return host_.is_of_interrupts; }
  bool moves_elsewhere() const override { return host_.elsewhere; }
  base::Result<std::vector<HostMask>> read() const override {
    if (host_.unreadable) return unexpected(*host_.unreadable);
    std::vector<HostMask> found;
    for (const auto& [name, cpus] : host_.masks) {
      const auto why = host_.fixed.find(name);
      found.push_back({name, name, cpus, why == host_.fixed.end() ? "" : why->second});
    }
    return found;
  }
  base::Result<void> write(const HostMask& mask, const CpuSet& cpus) const override {
    if (host_.before_write) host_.before_write();
    ++host_.writes;
    const auto refused = host_.refuses.find(mask.name);
    if (refused != host_.refuses.end()) return unexpected(refused->second);
    (host_.is_late ? host_.later : host_.masks)[mask.name] = cpus;
    return {};
  }

 private:
  Host& host_;
  std::string_view kind_, born_by_;
};

const CpuSet kAll = CpuSet::range(0, 7), kQuiet{2, 3}, kKept{0, 1, 4, 5, 6, 7};

struct Scene {
  Host host;
  tests::TempDir dir;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);

  RecordFile<MaskRecords> file() const { return {dir.path(), "boot"}; }
  Keeper keeper() {
    AllHostMasks kinds;
    kinds.push_back(std::make_unique<FakeMasks>(host));
    Keeper keeper(std::move(kinds), file(), logger);
    keeper.adopt();
    return keeper;
  }
  bool has_file() const { return std::filesystem::exists(file().path()); }
};

const KindState& only_kind(const Keeper& keeper) {
  REQUIRE(keeper.state().kinds.size() == 1);
  return keeper.state().kinds.front();
}

}  // namespace

TEST_CASE("the host is kept off CPUs, and has its masks back") {
  Scene scene;
  scene.host.masks = {{"a", kAll}, {"b", {0, 1}}, {"c", {2}}};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  CHECK(scene.host.masks["a"] == kKept);
  CHECK(scene.host.masks["b"] == CpuSet{0, 1});
  CHECK(scene.host.masks["c"] == CpuSet{2});
  CHECK(only_kind(keeper).found == 3);
  CHECK(only_kind(keeper).moved == 1);
  REQUIRE(only_kind(keeper).left.size() == 1);
  CHECK(only_kind(keeper).left[0].why == "it would have no CPU left");
  CHECK(keeper.holds());

  keeper.keep_off({}, kAll);
  CHECK(scene.host.masks["a"] == kAll);
  CHECK_FALSE(keeper.holds());
  CHECK_FALSE(scene.has_file());
}

TEST_CASE("nothing is written twice") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  keeper.keep_off(kQuiet, kKept);
  keeper.check();
  CHECK(scene.host.writes == 1);
}

TEST_CASE("what would have no CPU left goes elsewhere where it may, and comes back") {
  Scene scene;
  scene.host = {.masks = {{"a", {2}}}, .elsewhere = true};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  CHECK(scene.host.masks["a"] == kKept);
  keeper.keep_off({}, kAll);
  CHECK(scene.host.masks["a"] == CpuSet{2});
}

TEST_CASE("a mask is on record before it is written") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  std::optional<MaskRecords> recorded;
  scene.host.before_write = [&] { recorded = *scene.file().load(); };
  scene.keeper().keep_off(kQuiet, kKept);
  REQUIRE(recorded);
  CHECK(recorded->masks.at({"fake", "a"}) == policy::plan::HostRecord{kAll, {kKept}});
}

TEST_CASE("what cannot be recorded is not written") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  Keeper keeper = scene.keeper();
  std::filesystem::remove_all(scene.dir.path());
  keeper.keep_off(kQuiet, kKept);
  CHECK(scene.host.masks["a"] == kAll);
  CHECK(only_kind(keeper).problem.starts_with("nothing is written"));
  CHECK(keeper.is_unfinished());
}

TEST_CASE("the next helper knows what to put back, whenever the last one was killed") {
  Scene scene;
  scene.host.masks = {{"a", kAll}, {"b", kAll}};
  SECTION("after it was done") { scene.keeper().keep_off(kQuiet, kKept); }
  SECTION("in the middle") {
    scene.host.before_write = [&] {
      if (scene.host.writes == 1) throw std::runtime_error("killed");
    };
    Keeper killed = scene.keeper();
    CHECK_THROWS(killed.keep_off(kQuiet, kKept));
    CHECK(scene.host.masks["b"] == kAll);
    scene.host.before_write = {};
  }
  Keeper next = scene.keeper();
  CHECK(next.quiet() == kQuiet);
  next.keep_off({4}, kAll - CpuSet{4});
  CHECK(scene.host.masks["a"] == kAll - CpuSet{4});
  next.keep_off({}, kAll);
  CHECK(scene.host.masks["a"] == kAll);
  CHECK(scene.host.masks["b"] == kAll);
  CHECK_FALSE(scene.has_file());
}

TEST_CASE("a write that was begun is done again by the next helper, whatever the mask reads") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  scene.keeper().keep_off(kQuiet, kKept);
  scene.host.before_write = [&] {
    scene.host.masks["a"] = kAll;  // the first of two steps
    throw std::runtime_error("killed");
  };
  Keeper killed = scene.keeper();
  CHECK_THROWS(killed.keep_off({}, kAll));
  scene.host.before_write = {};
  scene.host.writes = 0;
  Keeper next = scene.keeper();
  next.keep_off({}, kAll);
  CHECK(scene.host.writes == 1);
  CHECK_FALSE(next.holds());
}

TEST_CASE("what another program writes meanwhile is narrowed, and is what comes back") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  scene.host.masks["a"] = {1, 2};
  keeper.check();
  CHECK(scene.host.masks["a"] == CpuSet{1});
  keeper.keep_off({}, kAll);
  CHECK(scene.host.masks["a"] == CpuSet{1, 2});
}

TEST_CASE("what the kernel refuses for good is named, and not tried again for the same CPUs") {
  Scene scene;
  scene.host = {.masks = {{"a", kAll}},
                .refuses = {{"a", base::system_error(EIO, "/proc/irq/7/smp_affinity_list")}}};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  keeper.check();
  CHECK(scene.host.writes == 1);
  CHECK(only_kind(keeper).left.at(0).why.starts_with("the kernel keeps it there: "));
  CHECK(only_kind(keeper).moved == 0);
  CHECK_FALSE(keeper.is_unfinished());
  keeper.keep_off({4}, kAll - CpuSet{4});
  CHECK(scene.host.writes == 2);
  keeper.keep_off({}, kAll);
  CHECK_FALSE(keeper.holds());
}

TEST_CASE("what fails for now stays on record, and is tried again") {
  Scene scene;
  scene.host = {.masks = {{"a", kAll}},
                .refuses = {{"a", {ErrorCode::kTransient, "systemd: no response", 0}}}};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  CHECK(keeper.is_unfinished());
  CHECK(only_kind(keeper).left.at(0).why == "systemd: no response; tried again");
  scene.host.masks["a"] = kKept;  // it came late
  scene.host.refuses.clear();
  keeper.check();
  CHECK_FALSE(keeper.is_unfinished());
  keeper.keep_off({}, kAll);
  CHECK(scene.host.masks["a"] == kAll);
}

TEST_CASE("what comes late is waited for, and comes back") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  scene.host.is_late = true;
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  CHECK(only_kind(keeper).left.at(0).why == "written, and not in force yet");
  keeper.check();
  scene.host.pass();
  keeper.check();
  CHECK(only_kind(keeper).moved == 1);
  CHECK(only_kind(keeper).left.empty());
  keeper.keep_off({}, kAll);
  CHECK(keeper.holds());
  scene.host.pass();
  keeper.check();
  CHECK(scene.host.masks["a"] == kAll);
  scene.host.pass();
  keeper.check();
  CHECK_FALSE(keeper.holds());
}

TEST_CASE("what is born with a mask of ours gets what it would have been born with") {
  Scene scene;
  Host parent;
  parent.masks = {{"default", kAll}};
  scene.host.masks = {{"a", kAll}, {"narrow by itself", kKept}};
  AllHostMasks kinds;
  kinds.push_back(std::make_unique<FakeMasks>(parent, "parent"));
  kinds.push_back(std::make_unique<FakeMasks>(scene.host, "fake", "parent"));
  Keeper keeper(std::move(kinds), scene.file(), scene.logger);
  keeper.adopt();
  keeper.keep_off(kQuiet, kKept);
  scene.host.masks["newborn"] = parent.masks["default"];
  keeper.check();
  CHECK(scene.file().load()->masks.contains({"fake", "newborn"}));
  scene.host.masks["last moment"] = parent.masks["default"];
  keeper.keep_off({}, kAll);
  CHECK(scene.host.masks["newborn"] == kAll);
  CHECK(scene.host.masks["last moment"] == kAll);
  CHECK(scene.host.masks["narrow by itself"] == kKept);
  CHECK_FALSE(keeper.holds());
}

TEST_CASE("what is born with a mask of ours while no helper runs gets what it would have had") {
  Scene scene;
  Host parent;
  parent.masks = {{"default", kAll}};
  scene.host.masks = {{"a", kAll}, {"narrow by itself", kKept}};
  const auto start = [&] {
    AllHostMasks kinds;
    kinds.push_back(std::make_unique<FakeMasks>(parent, "parent"));
    kinds.push_back(std::make_unique<FakeMasks>(scene.host, "fake", "parent"));
    Keeper keeper(std::move(kinds), scene.file(), scene.logger);
    keeper.adopt();
    return keeper;
  };
  const bool is_killed_at_once = GENERATE(false, true);
  if (is_killed_at_once) scene.host.before_write = [] { throw std::runtime_error("killed"); };
  try {
    start().keep_off(kQuiet, kKept);
  } catch (const std::runtime_error&) {
    scene.host.before_write = {};
  }
  scene.host.masks["newborn"] = parent.masks["default"];
  REQUIRE(scene.host.masks["newborn"] == kKept);
  Keeper next = start();
  if (GENERATE(false, true)) next.check();
  next.keep_off({}, kAll);
  CHECK(scene.host.masks["newborn"] == kAll);
  CHECK(scene.host.masks["a"] == kAll);
  CHECK(scene.host.masks["narrow by itself"] == kKept);
  CHECK_FALSE(scene.has_file());
}

TEST_CASE("what the kernel binds is named and left alone") {
  Scene scene;
  scene.host = {.masks = {{"migration/2", {2}}, {"x", kAll}},
                .fixed = {{"migration/2", "bound by the kernel"}, {"x", "bound by the kernel"}}};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  CHECK(scene.host.writes == 0);
  CHECK(only_kind(keeper).left.size() == 2);
}

TEST_CASE("what is out of reach is named as left, while the host is kept off anything") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  scene.host.out_of_reach = "elsewhere";
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  REQUIRE(only_kind(keeper).left.size() == 1);
  CHECK(only_kind(keeper).left[0].name == "elsewhere");
  CHECK(only_kind(keeper).left[0].cpus == kQuiet);
  CHECK(only_kind(keeper).left[0].why.starts_with("out of the helper's reach"));
  CHECK(only_kind(keeper).found == 1);
  keeper.keep_off({}, kAll);
  CHECK(only_kind(keeper).left.empty());
  CHECK_FALSE(keeper.holds());
}

TEST_CASE("a kind that cannot be read keeps its records") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  scene.host.unreadable = base::Error{ErrorCode::kTransient, "no descriptors", 0};
  keeper.keep_off({}, kAll);
  CHECK(only_kind(keeper).problem == "no descriptors");
  CHECK(keeper.holds());
  scene.host.unreadable.reset();
  keeper.check();
  CHECK(scene.host.masks["a"] == kAll);
  CHECK_FALSE(keeper.holds());
}

TEST_CASE("what is gone needs nothing back") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  scene.host.masks.clear();
  keeper.keep_off({}, kAll);
  CHECK_FALSE(keeper.holds());
}

TEST_CASE("records that cannot be read stop everything, and stay as they are") {
  Scene scene;
  scene.host.masks = {{"a", kAll}};
  scene.dir.write("quiet.json", "{");
  Keeper keeper = scene.keeper();
  keeper.keep_off(kQuiet, kKept);
  CHECK(scene.host.masks["a"] == kAll);
  CHECK(keeper.state().problem.find("quiet.json") != std::string::npos);
  CHECK(scene.has_file());
}

TEST_CASE("records of another boot are void: the kernel has forgotten it all") {
  Scene scene;
  const std::string earlier = "5f0f1c2e-0000-4000-8000-000000000000";
  REQUIRE(RecordFile<MaskRecords>(scene.dir.path(), earlier).save({kQuiet, {}, {}}));
  CHECK_FALSE(scene.keeper().holds());
  CHECK(scene.keeper().state().problem.empty());
}

TEST_CASE("records whose boot is no boot's id are unreadable, not of another boot") {
  Scene scene;
  REQUIRE(RecordFile<MaskRecords>(scene.dir.path(), "damaged").save({kQuiet, {}, {}}));
  CHECK(scene.keeper().state().problem.find("quiet.json") != std::string::npos);
  CHECK(scene.has_file());
}

TEST_CASE("CPUs that interrupts alone are kept off, also over a restart") {
  Scene scene;
  Host interrupts;
  interrupts.is_of_interrupts = true;
  scene.host.masks = {{"a", kAll}};
  interrupts.masks = {{"i", kAll}};
  const auto start = [&] {
    AllHostMasks kinds;
    kinds.push_back(std::make_unique<FakeMasks>(scene.host));
    kinds.push_back(std::make_unique<FakeMasks>(interrupts, "i"));
    Keeper keeper(std::move(kinds), scene.file(), scene.logger);
    keeper.adopt();
    return keeper;
  };
  start().keep_off({2}, kAll - CpuSet{2, 3}, {3});
  CHECK(scene.host.masks["a"] == kAll - CpuSet{2});
  CHECK(interrupts.masks["i"] == kAll - CpuSet{2, 3});
  Keeper next = start();
  CHECK(next.interrupts() == CpuSet{3});
  interrupts.masks["i"] = kAll;
  next.check();
  CHECK(interrupts.masks["i"] == kAll - CpuSet{2, 3});
  next.keep_off({}, kAll - CpuSet{3}, {3});
  CHECK(scene.host.masks["a"] == kAll);
  CHECK(next.holds());
  next.keep_off({}, kAll);
  CHECK(interrupts.masks["i"] == kAll);
  CHECK_FALSE(scene.has_file());
}
