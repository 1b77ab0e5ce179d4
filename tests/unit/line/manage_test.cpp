// SPDX-License-Identifier: Apache-2.0
// cgroup = "manage": what is written to a sandbox's cgroup, when, and what others' writes do to it.
#include <algorithm>
#include <cerrno>

#include "affinity/line/answer_limit.hpp"
#include "affinity/line/cgroup_keeper.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using tests::LineScene;

namespace {

constexpr const char* kCgroup = "pods/s1";

line::Options managed(policy::plan::Housekeeping::Kind housekeeping) {
  line::Options options;
  options.settings.manage_cgroup = true;
  options.settings.housekeeping.kind = housekeeping;
  return options;
}

/// A VM of three vCPUs whose container owns CPUs 2-3, in the cgroup that Kata makes of that.
struct Managed : LineScene {
  explicit Managed(line::Options options = managed(policy::plan::Housekeeping::Kind::kSharedPool))
      : LineScene(8, std::move(options)) {
    boot_pod("s1", 100, 3);
    kata_writes({2, 3});
    REQUIRE(add("s1", 100));
    REQUIRE(container("s1", "app", {2, 3}, true));
  }

  void kata_writes(const CpuSet& cpus) const { cpusets.make(kCgroup, cpus); }

  /// The same, noticed at once.
  void kata_overwrites(const CpuSet& cpus) {
    kata_writes(cpus);
    line().cgroup_written((node.cgroup() / kCgroup).string());
  }

  std::string cgroup() const { return policy::format_list(cpusets.configured(kCgroup)); }
  line::SandboxView view() { return *line().node().view("s1"); }
};

}  // namespace

TEST_CASE("threads outside the sandbox's cgroup go to the shared pool without the VMM") {
  LineScene scene(8, {});
  scene.node.process(90, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  scene.node.arguments(90, {"containerd-shim-kata-v2", "-id", "s1"});
  scene.node.in_cgroup(90, "system.slice/containerd.service", "0-7");
  scene.boot_pod("s1", 100, 3);
  scene.node.thread(100, 100, "qemu-system-x86", 90);
  scene.cpusets.make("pods/s1", {2, 3});
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  CHECK(scene.cpus(90) == "0-1,4-7");
  CHECK(scene.cpus(100) == "2");
  CHECK(scene.cpus(110) == "2");
  const auto& warnings = scene.line().node().view("s1")->plan.warnings;
  const auto confined = std::ranges::find(warnings, policy::plan::Code::kHousekeepingConfined,
                                          &policy::plan::Note::code);
  REQUIRE(confined != warnings.end());
  CHECK(confined->subject == "floating vCPUs, emulator, iothread");
  CHECK(policy::format_list(confined->cpus) == "0-1,4-7");

  scene.cpusets.make("pods/s1", CpuSet::range(0, 3));
  scene.line().reconcile_all();
  CHECK(scene.cpus(100) == "0-1");
  CHECK(scene.line().node().view("s1")->plan.warnings.empty());
}

TEST_CASE("in a managed cgroup housekeeping leaves the CPUs that Kata wrote") {
  Managed scene;
  CHECK(scene.cgroup() == "0-7");
  CHECK(scene.cpus(100) == "0-1,4-7");
  CHECK(scene.cpus(110) == "0-1,4-7");
  CHECK(scene.cpus(111) == "2");
  CHECK(scene.cpus(112) == "3");
  CHECK(scene.view().cgroup_managed);
  CHECK(scene.view().cgroup_theirs == CpuSet{2, 3});
  CHECK(scene.verifier().verify().ok());
  scene.cpusets.writes.clear();
  CHECK(scene.requests().reconcile("s1")->writes == 0);
  CHECK(scene.line().check_drift().planned == 0);
  CHECK(scene.cpusets.writes.empty());
}

TEST_CASE("a managed cgroup has what the plan needs and nothing else") {
  Managed scene(managed(policy::plan::Housekeeping::Kind::kSandbox));
  scene.notified.clear();
  scene.kata_overwrites(CpuSet::range(0, 7));
  CHECK(scene.cgroup() == "2-3");
  CHECK(std::ranges::count(scene.notified, "cgroup-written") == 1);
}

TEST_CASE("a cgroup is widened before threads move, and narrowed after") {
  Managed scene(managed(policy::plan::Housekeeping::Kind::kSandbox));
  std::vector<std::string> order;
  scene.cpusets.after_write = [&](const std::string&) {
    order.push_back("cgroup " + scene.cgroup());
  };
  scene.calls.after_write = [&](int) {
    if (order.back() != "threads") order.emplace_back("threads");
  };
  order.emplace_back();
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  CHECK(order == std::vector<std::string>{"", "cgroup 2-5", "threads", "cgroup 4-5"});
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.cpus(112) == "5");
}

TEST_CASE("masks that kernels before 6.2 drop on a cpuset write are set again") {
  Managed scene;
  scene.cpusets.after_write = [&](const std::string&) { scene.calls.own.clear(); };
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.kata_overwrites({4, 5});
  CHECK(scene.cgroup() == "0-7");
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.cpus(112) == "5");
  CHECK(scene.cpus(100) == "0-3,6-7");
  CHECK(scene.verifier().verify().ok());
}

TEST_CASE("CPUs that become another pod's leave the cgroup, whatever Kata writes") {
  Managed scene;
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "other", {6, 7}, true));
  CHECK(scene.cgroup() == "0-5");
  CHECK(scene.cpus(100) == "0-1,4-5");
  scene.kata_overwrites(CpuSet::range(2, 7));
  CHECK(scene.cgroup() == "0-5");
  REQUIRE(scene.remove("s2"));
  CHECK(scene.cgroup() == "0-7");
}

TEST_CASE("a thread that uses all of a managed cgroup follows later writes") {
  Managed scene(managed(policy::plan::Housekeeping::Kind::kSandbox));
  REQUIRE(scene.container("s1", "app", {2, 3, 4}, false));
  CHECK(scene.cgroup() == "2-4");
  scene.kata_writes({0, 1});  // and nobody is told
  CHECK(scene.cpus(100) == "0-1");
}

TEST_CASE("a cgroup cannot exceed its parent") {
  Managed scene;
  scene.cpusets.make("pods", CpuSet::range(0, 5));
  CHECK(scene.line().check_drift().planned == 1);
  CHECK(scene.cgroup() == "0-7");
  CHECK(scene.cpus(100) == "0-1,4-5");
  CHECK(scene.view().plan.cgroup == CpuSet::range(0, 5));
}

TEST_CASE("conflicting writes are reverted, with growing delays") {
  Managed scene;
  for (int i = 0; i < line::AnswerLimit::kAtOnce; ++i) {
    scene.kata_overwrites({2, 3});
    CHECK(scene.cgroup() == "0-7");
  }
  scene.kata_overwrites({2, 3});
  CHECK(scene.cgroup() == "2-3");
  CHECK(scene.cpus(111) == "2");  // still the best that can be had
  CHECK_FALSE(scene.view().cgroup_managed);
  CHECK(scene.view().cgroup_problem.find("keeps writing") != std::string::npos);
  CHECK(scene.verifier().verify().ok());

  scene.clock.advance(line::AnswerLimit::kShortest);
  CHECK(scene.line().check_drift().planned == 1);
  CHECK(scene.cgroup() == "0-7");
  scene.kata_overwrites({2, 3});
  scene.clock.advance(line::AnswerLimit::kShortest);
  scene.line().check_drift();
  CHECK(scene.cgroup() == "2-3");
  scene.clock.advance(line::AnswerLimit::kShortest);
  scene.line().check_drift();
  CHECK(scene.cgroup() == "0-7");
}

TEST_CASE("another program that writes CPUs of another pod is reverted also during back-off") {
  Managed scene;
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "other", {6, 7}, true));
  for (int i = 0; i <= line::AnswerLimit::kAtOnce; ++i) scene.kata_overwrites({6, 7});
  CHECK(scene.cgroup() == "6-7");
  scene.clock.advance(line::AnswerLimit::kShortest);
  scene.line().check_drift();
  CHECK(scene.cgroup() == "0-5");
  scene.clock.advance(line::AnswerLimit::kShortest);
  scene.kata_overwrites({6, 7});
  CHECK(scene.cgroup() == "0-5");
  scene.clock.advance(line::AnswerLimit::kShortest);
  scene.kata_overwrites({2, 3});
  CHECK(scene.cgroup() == "2-3");
}

TEST_CASE("verify names a managed cgroup that is not as planned") {
  Managed scene;
  const auto of_cgroup = [&] {
    auto findings = scene.verifier().verify().findings;
    std::erase_if(findings, [](const auto& finding) { return finding.reason != "cgroup"; });
    return findings;
  };
  CHECK(of_cgroup().empty());
  scene.kata_writes({2, 3, 7});
  REQUIRE(of_cgroup().size() == 1);
  const line::Finding found = of_cgroup().front();
  CHECK(found.severity == line::Severity::kDegraded);
  CHECK(found.invariant == "drift");
  CHECK(found.text == "its cgroup has CPUs 2-3,7, wanted " + policy::format_list(found.wanted));
  scene.line().check_drift();
  CHECK(of_cgroup().empty());
}

TEST_CASE("a new plan is written also during back-off") {
  Managed scene;
  for (int i = 0; i <= line::AnswerLimit::kAtOnce; ++i) scene.kata_overwrites({2, 3});
  REQUIRE(scene.cgroup() == "2-3");
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "other", {6, 7}, true));
  REQUIRE(scene.container("s1", "app", {2, 3, 4}, true));
  CHECK(scene.cgroup() == "0-5");
}

TEST_CASE("a released sandbox has the cpuset that others wrote, also after a restart") {
  Managed scene;
  scene.kata_overwrites({2, 3, 4});
  CHECK(scene.cgroup() == "0-7");
  scene.start();
  scene.line().adopt();
  CHECK(scene.cgroup() == "0-7");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.cgroup() == "2-4");
  CHECK(scene.cpus(111) == "2-4");
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.cgroup() == "0-7");
  CHECK(scene.cpus(111) == "2");
}

TEST_CASE("a cgroup that cannot be given back stays known, and is tried again until it is") {
  const int fault = GENERATE(EIO, EBUSY, EPERM, EROFS);
  const bool is_restarted = GENERATE(false, true);
  Managed scene;
  scene.kata_overwrites({2, 3, 4});
  scene.cpusets.fault = fault;
  REQUIRE(scene.requests().release("s1"));
  const auto has_finding = [&scene] {
    const auto report = scene.verifier().verify();
    return std::ranges::any_of(report.findings, [](const line::Finding& finding) {
      return finding.reason == "cgroup" && finding.severity == line::Severity::kDegraded;
    });
  };
  const auto expect_reported = [&] {
    CHECK(scene.cgroup() == "0-7");
    CHECK(scene.view().cgroup_theirs == CpuSet{2, 3, 4});
    CHECK_FALSE(scene.view().cgroup_problem.empty());
    CHECK(std::ranges::count(scene.notified, "unmanaged") == 1);
    CHECK(has_finding());
  };
  expect_reported();
  if (is_restarted) {
    scene.start();
    scene.notified.clear();
    scene.line().adopt();
    expect_reported();
  }
  scene.clock.advance(line::CgroupKeeper::kFirstRetry);
  scene.line().check_drift();
  expect_reported();
  scene.cpusets.fault = 0;
  scene.clock.advance(line::CgroupKeeper::kFirstRetry);
  scene.line().check_drift();
  CHECK(scene.cgroup() == "0-7");
  scene.clock.advance(line::CgroupKeeper::kFirstRetry);
  scene.line().check_drift();
  CHECK(scene.cgroup() == "2-4");
  CHECK(scene.view().cgroup_problem.empty());
  CHECK_FALSE(scene.view().cgroup_theirs);
  CHECK_FALSE(has_finding());
}

TEST_CASE("cgroup = obey restores a cpuset, without CPUs of other pods") {
  Managed scene;
  scene.kata_overwrites(CpuSet::range(2, 7));
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "other", {6, 7}, true));
  scene.line().configure(tests::at_home());
  CHECK(scene.cgroup() == "2-5");
  CHECK(scene.cpus(100) == "2");
  CHECK_FALSE(scene.view().cgroup_theirs);
}

TEST_CASE("a released cgroup whose cpuset nobody had written gets all CPUs that are not others'") {
  const bool has_other = GENERATE(false, true);
  LineScene scene(8, managed(policy::plan::Housekeeping::Kind::kSandbox));
  scene.boot_pod("s1", 100, 3);
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  REQUIRE(scene.container("s2", "other", {6, 7}, has_other));
  REQUIRE(scene.cpusets.configured(kCgroup) == CpuSet{2, 3});
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.cpusets.configured(kCgroup) == CpuSet::range(0, has_other ? 5 : 7));
  CHECK(scene.cpus(111) == (has_other ? "0-5" : "0-7"));
  CHECK(scene.line().node().view("s1")->cgroup_problem.empty());
  CHECK_FALSE(scene.line().node().view("s1")->cgroup_theirs);
}

TEST_CASE("release does not overwrite the last write of others") {
  Managed scene;
  scene.kata_writes({3});
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.cgroup() == "3");
}

TEST_CASE("a cgroup that cannot be written is obeyed, and status names the reason") {
  Managed scene;
  scene.cpusets.fault = EROFS;
  scene.kata_overwrites({2, 3});
  CHECK(scene.cgroup() == "2-3");
  CHECK(scene.cpus(111) == "2");
  CHECK_FALSE(scene.view().cgroup_managed);
  CHECK_FALSE(scene.view().cgroup_problem.empty());
  CHECK(std::ranges::count(scene.notified, "unmanaged") == 1);
  scene.line().check_drift();
  CHECK(std::ranges::count(scene.notified, "unmanaged") == 1);

  scene.cpusets.fault = 0;
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.cgroup() == "0-7");
}

TEST_CASE("a cgroup that cannot be written makes verify degraded, and is tried again") {
  const int fault = GENERATE(EROFS, EPERM, EBUSY, EIO);
  Managed scene;
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s2", 200));
  scene.cpusets.fault = fault;
  REQUIRE(scene.container("s2", "other", {6, 7}, true));
  const auto of_cgroup = [&scene] {
    auto findings = scene.verifier().verify().findings;
    std::erase_if(findings, [](const auto& one) { return one.reason != "cgroup"; });
    return findings;
  };
  REQUIRE(of_cgroup().size() == 1);
  CHECK(of_cgroup().front().severity == line::Severity::kDegraded);
  CHECK(of_cgroup().front().text.find("pods/s1: ") != std::string::npos);
  if (fault == EROFS) {
    CHECK(of_cgroup().front().text.find("6-7 belong to another pod") != std::string::npos);
    CHECK_FALSE(of_cgroup().front().remedy.empty());
  }
  scene.clock.advance(line::CgroupKeeper::kFirstRetry);
  scene.line().check_drift();
  CHECK(of_cgroup().size() == 1);
  scene.cpusets.fault = 0;
  scene.clock.advance(2 * line::CgroupKeeper::kFirstRetry);
  scene.line().check_drift();
  CHECK(scene.cgroup() == "0-5");
  CHECK(of_cgroup().empty());
}

TEST_CASE("a cgroup that cannot be read is reported, and managed again once it can") {
  Managed scene;
  const auto file = scene.node.cgroup() / kCgroup / "cpuset.cpus";
  const auto aside = file.parent_path() / "aside";
  std::filesystem::rename(file, aside);
  std::filesystem::create_directory(file);
  scene.line().check_drift();
  scene.line().check_drift();
  CHECK(std::ranges::count(scene.notified, "unmanaged") == 1);
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kUnknown);
  std::filesystem::remove(file);
  std::filesystem::rename(aside, file);
  scene.line().check_drift();
  CHECK(scene.view().cgroup_managed);
  CHECK(scene.verifier().verify().verdict() != line::Verdict::kUnknown);
}

TEST_CASE("a cgroup that cannot be narrowed is reported, with the reason, until it is") {
  Managed scene(managed(policy::plan::Housekeeping::Kind::kSandbox));
  scene.cpusets.fault = EIO;
  scene.kata_overwrites(CpuSet::range(0, 7));
  CHECK(std::ranges::count(scene.notified, "unmanaged") == 1);
  const auto of_cgroup = [&scene] {
    std::string text;
    for (const line::Finding& finding : scene.verifier().verify().findings) {
      if (finding.subject == "cgroup") text += finding.text;
    }
    return text;
  };
  CHECK(of_cgroup() == "its cgroup has CPUs 0-7, wanted 2-3: pods/s1: Input/output error");
  scene.cpusets.fault = 0;
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.cgroup() == "2-3");
  CHECK(of_cgroup().empty());
}

TEST_CASE("observe mode plans as if the cgroup were managed, and writes nothing") {
  auto options = managed(policy::plan::Housekeeping::Kind::kSharedPool);
  options.observe = true;
  Managed scene(options);
  CHECK(scene.cgroup() == "2-3");
  CHECK(scene.cpusets.writes.empty());
  CHECK(scene.calls.writes.empty());
  CHECK(scene.view().plan.cgroup == CpuSet::range(0, 7));
  const auto& threads = scene.view().threads;
  CHECK(policy::format_list(threads.front().wanted) == "0-1,4-7");
}

TEST_CASE("a cgroup that is the only source for containers is left as Kata wrote it") {
  LineScene scene(8, managed(policy::plan::Housekeeping::Kind::kSharedPool));
  scene.boot_pod("s1", 100, 3);
  scene.cpusets.make(kCgroup, {2, 3});
  policy::ledger::PodSeen pod;
  pod.id = "s1";
  pod.vmm = tests::process_id(100);
  scene.line().handle({policy::ledger::Source::kCgroup, pod});
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  CHECK(scene.cpusets.writes.empty());
  const auto view = scene.line().node().view("s1");
  CHECK_FALSE(view->cgroup_managed);
  CHECK(view->cgroup_problem.find("only source for its containers") != std::string::npos);
}

TEST_CASE("a cgroup with foreign processes is not managed") {
  LineScene scene(8, managed(policy::plan::Housekeeping::Kind::kSharedPool));
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  CHECK(scene.cpusets.writes.empty());
  CHECK_FALSE(scene.line().node().view("s1")->cgroup_managed);
  CHECK(scene.line().node().view("s1")->cgroup_problem == "it has no cgroup of its own");
}

TEST_CASE("writes of others to a managed cgroup are reported, with whose CPUs they contain") {
  Managed scene;
  scene.line().handle({policy::ledger::Source::kKubelet,
                       policy::ledger::KubeletSeen{
                           {}, std::vector<policy::ledger::Claim>{{"uid-new", "app", {4}}}}});
  std::vector<std::string> said;
  const auto listening =
      scene.board().feed().subscribe([&](const board::Notification& notification) {
        if (notification.kind == board::NotificationKind::kCgroupOverwritten)
          said.push_back(notification.text);
      });
  scene.line().reconcile_all();
  CHECK(said.empty());
  scene.kata_overwrites({2, 3});
  scene.kata_overwrites({2, 3, 4});
  CHECK(
      said ==
      std::vector<std::string>{
          "Kata or another program set its cgroup to CPUs \"2-3\", those of its containers, as "
          "Kata does",
          "Kata or another program set its cgroup to CPUs \"2-4\"; CPUs 4 belong to another pod"});
  CHECK_FALSE(scene.cpusets.configured(kCgroup).contains(4));
}
