// SPDX-License-Identifier: Apache-2.0
// The states of a managed cgroup, as the table in cgroup_keeper.hpp has them.
#include "affinity/line/cgroup_keeper.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/fake_cpusets.hpp"
#include "tests/fake_node.hpp"

using namespace ka;
using line::CgroupKeeper;
using line::CgroupMode;
using policy::CpuSet;
using State = CgroupKeeper::State;

namespace {

struct Scene {
  Scene() {
    node.cgroup_v2();
    cpusets.make("", CpuSet::range(0, 7));
    cpusets.make("s1", {2, 3});
    cpusets.make("s2", {4, 5});
    cgroups.emplace(*host::Cgroups::find(node.proc()));
  }

  State observe(CgroupMode mode, const std::string& why_not = {}, const char* name = "s1") {
    keeper.observe(cgroups, node.cgroup() / name, mode, why_not);
    return keeper.state();
  }
  bool widen(const CpuSet& wanted) { return keeper.widen(wanted, {}, now, writer); }

  /// Others write it again and again, and are answered, until it is not time to.
  void contest() {
    while (keeper.accepts({2, 3, 6}, {}, now)) {
      widen({2, 3, 6});
      cpusets.make("s1", {2, 3});
      observe(CgroupMode::kManage);
    }
  }

  tests::FakeNode node;
  tests::FakeCpusets cpusets{node.cgroup()};
  std::optional<host::Cgroups> cgroups;
  CgroupKeeper keeper;
  line::CgroupWriter writer{cpusets, [] {}};
  CgroupKeeper::Time now{std::chrono::hours(1)};
};

}  // namespace

TEST_CASE("a cgroup is managed, watched or left alone as configured") {
  Scene scene;
  CHECK(scene.observe(CgroupMode::kObey) == State::kUnmanaged);
  CHECK(scene.observe(CgroupMode::kWatch) == State::kWatched);
  CHECK(scene.keeper.in_charge());
  CHECK(scene.observe(CgroupMode::kManage) == State::kManaged);
  CHECK(scene.observe(CgroupMode::kManage, "a reason") == State::kUnmanaged);
  CHECK(scene.keeper.problem() == "a reason");
  CHECK(scene.observe(CgroupMode::kManage, {}, "gone") == State::kUnmanaged);
  CHECK_FALSE(scene.keeper.has_seen());
}

TEST_CASE("between its two writes a cgroup is open") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  CHECK(scene.widen({2, 3, 6}));
  CHECK(scene.keeper.state() == State::kOpen);
  CHECK_FALSE(scene.keeper.narrow({2, 3, 6}, scene.now, scene.writer));
  CHECK(scene.keeper.state() == State::kManaged);
}

TEST_CASE("our writes are undone when the cgroup is no longer to be managed") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.widen({2, 3, 6});
  CHECK(scene.observe(CgroupMode::kObey) == State::kReturning);
  CHECK(scene.widen({}));
  CHECK(scene.keeper.state() == State::kUnmanaged);
  CHECK_FALSE(scene.keeper.saved());
  CHECK(scene.cpusets.configured("s1") == CpuSet{2, 3});
}

TEST_CASE("a cgroup that could not be given back stays ours, and is tried after the back-off") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.widen({2, 3, 6});
  scene.observe(CgroupMode::kObey);
  scene.cpusets.fault = GENERATE(EIO, EPERM);
  CHECK_FALSE(scene.widen({}));
  CHECK(scene.keeper.has_failed());
  CHECK(scene.keeper.saved() ==
        state::SavedCgroup{scene.node.cgroup() / "s1", {2, 3}, {2, 3, 6}, {2, 3, 6}});
  CHECK(scene.observe(CgroupMode::kObey) == State::kReturning);  // as verify does
  CHECK(scene.keeper.is_unreturned());
  CHECK(scene.keeper.is_unchanged(scene.cgroups, scene.now));
  CHECK_FALSE(scene.keeper.is_unchanged(scene.cgroups, scene.now + CgroupKeeper::kFirstRetry));
  SECTION("it can be written again") {
    scene.cpusets.fault = 0;
    CHECK(scene.widen({}));
    CHECK(scene.cpusets.configured("s1") == CpuSet{2, 3});
  }
  SECTION("others have written it meanwhile") {
    scene.cpusets.make("s1", {3});
    CHECK(scene.observe(CgroupMode::kObey) == State::kReturning);
    CHECK_FALSE(scene.widen({}));
  }
  CHECK(scene.keeper.problem().empty());
  CHECK_FALSE(scene.keeper.saved());
}

TEST_CASE("a cgroup that cannot be read when it is to be given back is read again") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.widen({2, 3, 6});
  const auto file = scene.node.cgroup() / "s1/cpuset.cpus", away = scene.node.cgroup() / "away";
  std::filesystem::rename(file, away);
  std::filesystem::create_symlink(file, file);  // open(2): ELOOP
  CHECK(scene.observe(CgroupMode::kObey) == State::kUnmanaged);
  CHECK(scene.keeper.saved());
  CHECK_FALSE(scene.keeper.problem().empty());
  CHECK_FALSE(scene.keeper.is_unchanged(scene.cgroups, scene.now));
  std::filesystem::remove(file);
  std::filesystem::rename(away, file);
  CHECK(scene.observe(CgroupMode::kObey) == State::kReturning);
  CHECK(scene.widen({}));
  CHECK(scene.cpusets.configured("s1") == CpuSet{2, 3});
}

TEST_CASE("others' cpuset is not written back while the vCPUs have its CPUs to themselves") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.widen({2, 3, 6});
  const auto partition = scene.node.cgroup() / "s1/kata-affinity";
  std::filesystem::create_directories(partition);
  std::ofstream(partition / "cpuset.cpus.effective") << "2-3\n";
  CHECK(scene.observe(CgroupMode::kObey) == State::kReturning);
  CHECK_FALSE(scene.widen({}));
  CHECK(scene.cpusets.configured("s1") == CpuSet{2, 3, 6});
  std::filesystem::remove_all(partition);
  CHECK(scene.observe(CgroupMode::kObey) == State::kReturning);
  CHECK(scene.widen({}));
  CHECK(scene.cpusets.configured("s1") == CpuSet{2, 3});
}

TEST_CASE("a failed write is retried at the next observation, unless refused") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.cpusets.fault = EBUSY;
  CHECK_FALSE(scene.widen({2, 3, 6}));
  CHECK(scene.keeper.state() == State::kFailed);
  CHECK(scene.observe(CgroupMode::kManage) == State::kManaged);
  scene.cpusets.fault = EPERM;
  CHECK_FALSE(scene.widen({2, 3, 6}));
  CHECK(scene.keeper.state() == State::kRefused);
  CHECK(scene.observe(CgroupMode::kManage) == State::kRefused);
  CHECK(scene.observe(CgroupMode::kObey) == State::kRefused);
  SECTION("an operator reconciles") {
    scene.keeper.retry_refused();
    CHECK(scene.keeper.state() == State::kFailed);
    CHECK(scene.observe(CgroupMode::kManage) == State::kManaged);
  }
  SECTION("its back-off has passed") {
    scene.keeper.retry_due(scene.now);
    CHECK(scene.keeper.state() == State::kRefused);
    scene.keeper.retry_due(scene.now + 2 * CgroupKeeper::kFirstRetry);
    CHECK(scene.keeper.state() == State::kFailed);
  }
  SECTION("the VMM was moved to another cgroup") {
    CHECK(scene.observe(CgroupMode::kManage, {}, "s2") == State::kManaged);
  }
}

TEST_CASE("why a write failed is known until it is done, or need not be") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.widen({2, 3, 6});
  scene.cpusets.fault = EIO;
  CHECK_FALSE(scene.keeper.narrow({2, 6}, scene.now, scene.writer));
  CHECK(scene.observe(CgroupMode::kManage) == State::kManaged);
  CHECK(scene.keeper.problem().find("Input/output error") != std::string::npos);
  const bool is_written = GENERATE(true, false);
  scene.cpusets.fault = is_written ? 0 : EIO;
  const CpuSet wanted = is_written ? CpuSet{2, 6} : CpuSet{2, 3, 6};
  CHECK(scene.keeper.narrow(wanted, scene.now, scene.writer) == is_written);
  CHECK(scene.keeper.problem().empty());
}

TEST_CASE("conflicting writes are reverted again after the back-off") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.widen({2, 3, 6});
  scene.cpusets.make("s1", {2, 3});
  scene.observe(CgroupMode::kManage);
  scene.contest();
  CHECK(scene.keeper.state() == State::kContested);
  CHECK_FALSE(scene.widen({2, 3, 6}));
  CHECK(scene.keeper.is_unchanged(scene.cgroups, scene.now));
  scene.now += std::chrono::seconds(61);
  CHECK_FALSE(scene.keeper.is_unchanged(scene.cgroups, scene.now));
}

TEST_CASE("CPUs of other pods are answered also during back-off, once a second") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.widen({2, 3, 6});
  scene.cpusets.make("s1", {2, 3});
  scene.observe(CgroupMode::kManage);
  scene.contest();
  scene.observe(CgroupMode::kManage);
  CHECK_FALSE(scene.keeper.accepts({2, 3, 6}, {3}, scene.now));
  CHECK(scene.keeper.state() == State::kContested);
  scene.now += line::AnswerLimit::kShortest;
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(scene.keeper.is_unchanged(scene.cgroups, scene.now));
    scene.observe(CgroupMode::kManage);
    CHECK(scene.keeper.accepts({2, 3, 6}, {3}, scene.now));
    scene.widen({2, 3, 6});
    scene.cpusets.make("s1", {2, 3});
    scene.observe(CgroupMode::kManage);
    CHECK_FALSE(scene.keeper.accepts({2, 3, 6}, {3}, scene.now));
    scene.now += line::AnswerLimit::kShortest;
  }
  scene.observe(CgroupMode::kManage);
  CHECK_FALSE(scene.keeper.accepts({2, 3, 6}, {7}, scene.now));
}

TEST_CASE("failed writes are retried with growing delays, and reported once") {
  Scene scene;
  scene.observe(CgroupMode::kManage);
  scene.cpusets.fault = EBUSY;
  int delays = 0;
  for (auto delay = CgroupKeeper::kFirstRetry; delay < 2 * CgroupKeeper::kLastRetry; delay *= 2) {
    CHECK_FALSE(scene.widen({2, 3, 6}));
    CHECK(scene.keeper.has_new_problem() == (delays++ == 0));
    scene.observe(CgroupMode::kManage);  // as verify does
    const auto bounded = std::min(delay, CgroupKeeper::kLastRetry);
    CHECK(scene.keeper.is_unchanged(scene.cgroups, scene.now + bounded / 2));
    scene.now += bounded;
    CHECK_FALSE(scene.keeper.is_unchanged(scene.cgroups, scene.now));
  }
  scene.cpusets.fault = 0;
  CHECK(scene.widen({2, 3, 6}));
  CHECK(scene.keeper.is_unchanged(scene.cgroups, scene.now));
}
