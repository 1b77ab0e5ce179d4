// SPDX-License-Identifier: Apache-2.0
// What a daemon does between its start and the moment when it knows who owns which CPU.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/unit/line/restart.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::Source;
using tests::LineScene;
using tests::Restart;

namespace {

bool says_unsaved(LineScene& scene) {
  const line::VerifyReport report = scene.verifier().verify();
  return report.verdict() != line::Verdict::kOk &&
         std::ranges::find(report.findings, "state-unsaved", &line::Finding::reason) !=
             report.findings.end();
}

}  // namespace

TEST_CASE("before an awaited source has reported, threads only lose CPUs") {
  Restart scene;
  scene.line().expect(Source::kNri);
  scene.calls.own[210] = {1};           // less than the plan wants
  scene.calls.own[200] = CpuSet{1, 3};  // more
  scene.calls.own[110] = CpuSet{5};     // elsewhere: a move would be a widening
  scene.line().adopt();
  CHECK(scene.cpus(210) == "1");
  CHECK(scene.cpus(200) == "1");
  CHECK(scene.cpus(110) == "5");
  CHECK(scene.has("start-waiting"));
  const line::VerifyReport report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kUnknown);
  CHECK(std::ranges::count(report.findings, "held-back", &line::Finding::reason) == 3);
  CHECK(std::ranges::count(report.findings, line::Severity::kViolated, &line::Finding::severity) ==
        0);

  scene.line().check_drift();
  scene.line().configure(tests::at_home());
  CHECK(scene.requests().reconcile("b")->failed == 0);
  scene.line().reconcile_all();
  scene.line().release_all();
  CHECK(scene.cpus(210) == "1");
  CHECK(scene.cpus(110) == "5");
  scene.line().reconcile_all();

  scene.line().source_synced(Source::kNri);
  scene.line().finish({});
  CHECK(scene.cpus(210) == "0-2");
  CHECK(scene.cpus(200) == "0-2");
  CHECK(scene.cpus(110) == "3");
  CHECK(scene.has("start-complete"));
  CHECK(scene.verifier().verify().ok());
}

TEST_CASE("at the start only a VMM that is seen to be gone has ended") {
  Restart scene;
  const auto is_kept = [&scene] {
    scene.line().adopt();
    return !scene.has("sandbox-ended");
  };
  SECTION("its files are gone, and the kernel still has it") {
    scene.node.end_process(100);
    CHECK(is_kept());
  }
  SECTION("its files cannot be read, whatever the kernel says of its number") {
    const auto stat = scene.node.proc() / "100/task/100/stat";
    std::filesystem::remove(stat);
    std::filesystem::create_directory(stat);
    scene.calls.gone.insert(100);
    CHECK(is_kept());
  }
  SECTION("both say so") {
    scene.node.end_process(100);
    scene.calls.gone.insert(100);
    CHECK_FALSE(is_kept());
  }
}

TEST_CASE("no mask is wider than kubelet's new assignments allow") {
  Restart scene;
  scene.calls.own.clear();  // somebody gave all threads all CPUs
  scene.line().expect(Source::kKubelet);
  scene.line().handle(scene.kubelet({1}));
  scene.line().adopt();
  CHECK_FALSE(scene.calls.writes.empty());
  for (const auto& [tid, cpus] : scene.calls.writes) CHECK_FALSE(cpus.contains(1));
  CHECK(scene.cpus(210) == "0,2");
}

TEST_CASE("what kubelet's file was before the start keeps owners, and the wait for kubelet lasts") {
  Restart scene;
  scene.line().expect(Source::kKubelet);
  auto kubelet = scene.kubelet({1});
  std::get<policy::ledger::KubeletSeen>(kubelet.body).outdated = true;
  scene.line().handle(kubelet);
  scene.line().adopt();
  REQUIRE(scene.container("a", "app", CpuSet::range(0, 3), false));
  CHECK(scene.cpus(210) == "0,2");
  scene.line().stop_waiting();
  CHECK(scene.cpus(210) == "0,2-3");
}

TEST_CASE("reconcile is the remedy of a start only where it has an effect") {
  Restart scene;
  scene.damage("a");
  scene.line().expect(Source::kNri);
  scene.line().adopt();
  const auto remedy = [&scene] {
    for (const line::Finding& found : scene.verifier().verify().findings) {
      if (found.invariant == "start") return found.remedy;
    }
    return std::string("none");
  };
  CHECK(remedy() == "wait until 10 s after the daemon's start, or bring up nri");
  scene.line().stop_waiting();
  CHECK(remedy() == "kata-affinityctl reconcile");
  scene.line().reconcile_all();
  CHECK(remedy() == "none");
}

TEST_CASE("a silent source is skipped after a while, and named") {
  Restart scene;
  scene.line().expect(Source::kNri);
  scene.calls.own[210] = {1};
  scene.line().adopt();
  scene.line().stop_waiting();
  CHECK(scene.has("start-late"));
  CHECK(scene.cpus(210) == "0-2");
}

TEST_CASE("the CPUs of a pod with damaged state go to no other pod") {
  Restart scene;
  scene.damage("a");
  scene.line().expect(Source::kPersist);
  scene.line().adopt();
  scene.line().source_synced(Source::kPersist);
  scene.line().finish({});
  scene.line().stop_waiting();
  scene.line().check_drift();
  CHECK(scene.cpus(210) == "0-2");
  REQUIRE(scene.line().node().gate().lost().size() == 1);
  CHECK(scene.line().node().gate().lost()[0].pod == "a");
  CHECK(scene.remove("b").error().code == base::ErrorCode::kUnavailable);
  SECTION("until a source reports it") {
    REQUIRE(scene.add("a", 100));
    REQUIRE(scene.container("a", "app", {2}, true));
    CHECK(scene.cpus(210) == "0-1,3");
  }
  SECTION("until an operator overrides it") {
    scene.line().reconcile_all();
    CHECK(scene.cpus(210) == "0-3");
    CHECK(scene.line().node().gate().lost().empty());
  }
  SECTION("also in the next daemon") {
    scene.start();
    scene.line().adopt();
    CHECK(scene.cpus(210) == "0-2");
    scene.line().source_synced(Source::kNri);  // which knows no sandbox that was added by hand
    scene.line().finish({});
    CHECK(scene.cpus(210) == "0-2");
    scene.line().reconcile_all();
    CHECK(scene.cpus(210) == "0-3");
    scene.start();
    scene.line().adopt();
    CHECK(scene.line().node().gate().may_widen());
  }
}

TEST_CASE("state that is briefly unreadable is read later, without loss") {
  Restart scene;
  const auto away = scene.state_dir() / "away";
  std::filesystem::rename(scene.file("a"), away);
  std::filesystem::create_symlink(scene.file("a"), scene.file("a"));  // open(2): ELOOP
  scene.line().adopt();
  CHECK(scene.cpus(210) == "0-2");
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b"});
  std::filesystem::remove(scene.file("a"));
  std::filesystem::rename(away, scene.file("a"));
  scene.line().check_drift();
  CHECK(scene.line().node().sandbox_ids().size() == 2);
  CHECK(scene.line().node().gate().may_widen());
  CHECK(scene.line().node().gate().lost().empty());
  CHECK(scene.cpus(210) == "0-2");
  CHECK(scene.cpus(110) == "3");
}

TEST_CASE("one VM in two state files is placed for one pod, for good") {
  LineScene scene;
  scene.boot_vm(100, 1);
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.container("a", "app", {3}, true));
  const auto file = scene.state_dir() / "a.json", aside = scene.state_dir() / "aside";
  std::filesystem::copy_file(file, aside);  // as if it could not be removed
  REQUIRE(scene.remove("a"));
  REQUIRE(scene.add("b", 100));
  REQUIRE(scene.container("b", "app", {5}, true));
  std::filesystem::rename(aside, file);
  std::filesystem::last_write_time(
      file, std::filesystem::last_write_time(scene.state_dir() / "b.json") - std::chrono::hours(1));
  scene.start();
  scene.line().adopt();
  scene.calls.writes.clear();
  for (int i = 0; i < 3; ++i) scene.line().check_drift();
  CHECK(scene.cpus(110) == "5");
  CHECK(scene.calls.writes.empty());
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b"});
  CHECK(scene.line().node().ledger().exclusive() == CpuSet{3, 5});
  CHECK(scene.broken().empty());
  REQUIRE(scene.remove("a"));
  CHECK(scene.line().node().ledger().exclusive() == CpuSet{5});
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a VM that a source reports of another pod than a state file is placed for that pod") {
  Restart scene;
  scene.line().adopt();
  REQUIRE(scene.line().node().sandbox_ids() == std::vector<std::string>{"a", "b"});
  const auto claim = [&]() -> policy::ledger::Event {
    return {Source::kNri,
            policy::ledger::PodSeen{.id = "c", .pod_uid = "uid-c", .vmm = tests::process_id(100)}};
  };
  policy::ContainerFacts app{.id = "app", .cpus = {5}};
  app.period = app.quota = 100000;
  if (GENERATE(true, false)) {  // a runtime that waits, or an operator
    scene.line().narrow({claim(), {Source::kNri, policy::ledger::whole_report("c", app)}},
                        std::chrono::seconds(1));
    scene.line().finish("c");
  } else {
    REQUIRE(scene.add("c", 100));
    REQUIRE(scene.container("c", "app", {5}, true));
  }
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b", "c"});
  CHECK(scene.cpus(110) == "5");
  CHECK(scene.line().node().ledger().exclusive() == CpuSet{3, 5});
  CHECK(scene.cpus(210) == "0-2");  // CPU 3 is still that of a
  CHECK(scene.has("vmm-refused"));
  CHECK(scene.broken().empty());

  SECTION("and for good") {
    scene.start();
    scene.notified.clear();
    scene.line().adopt();
    CHECK_FALSE(scene.has("vmm-refused"));
    CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b", "c"});
    CHECK(scene.line().node().ledger().exclusive() == CpuSet{3, 5});
  }
  SECTION("and has on release what it had before the first daemon") {
    REQUIRE(scene.remove("a"));
    REQUIRE(scene.remove("b"));
    REQUIRE(scene.requests().release("c"));
    CHECK(scene.cpus(110) == "0-7");
  }
}

TEST_CASE("an operator names the cgroup of a VM that only a state file gives another pod") {
  LineScene scene;
  scene.boot_pod("a", 100, 1);
  REQUIRE(scene.add("a", 100));
  const auto claim = [&] {
    return scene.requests().submit(
        {Source::kApi,
         policy::ledger::PodSeen{.id = "c", .vmm = tests::process_id(100), .cgroup = "/pods/a"}});
  };
  CHECK(claim().error().code == base::ErrorCode::kConflict);
  scene.start();
  scene.line().adopt();
  REQUIRE(claim());
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"c"});
}

TEST_CASE("a pin that ended while no daemon ran is not put back") {
  Restart scene;
  scene.line().adopt();
  policy::ledger::Pin pin;
  pin.role = policy::Role::kEmulator;
  pin.cpus = {1};
  REQUIRE(scene.requests().submit(
      {Source::kApi, policy::ledger::OverrideSet{.sandbox = "b", .value = pin, .lasts_for = 20}}));
  REQUIRE(scene.cpus(200) == "1");
  scene.start();
  scene.clock.advance(std::chrono::seconds(10));
  SECTION("it has not ended yet") {
    scene.line().adopt();
    CHECK(scene.cpus(200) == "1");
    CHECK(scene.requests().next_pin_end());
  }
  SECTION("it has") {
    scene.clock.advance(std::chrono::seconds(10));
    scene.calls.own[200] = {0, 1, 2};
    scene.calls.writes.clear();
    scene.line().adopt();
    CHECK(scene.calls.writes.empty());
    CHECK(scene.cpus(200) == "0-2");
    CHECK_FALSE(scene.requests().next_pin_end());
    scene.start();
    scene.line().adopt();
    CHECK(scene.line().node().ledger().find("b")->overrides.empty());
  }
}

TEST_CASE("state that cannot be written is reported once, retried, and written") {
  LineScene scene;
  scene.boot_vm(100, 1);
  const auto file = scene.state_dir() / "s1.json";
  std::filesystem::create_directory(file);
  scene.notified.clear();
  REQUIRE(scene.add("s1", 100));
  CHECK(std::ranges::count(scene.notified, "state-unsaved") == 1);
  REQUIRE(scene.container("s1", "app", {3}, true));
  CHECK(scene.line().node().registry.unsaved().contains("s1"));
  CHECK(says_unsaved(scene));
  CHECK(std::ranges::count(scene.notified, "state-unsaved") == 1);
  std::filesystem::remove(file);
  scene.line().check_drift();
  CHECK(scene.line().node().registry.unsaved().empty());
  CHECK_FALSE(says_unsaved(scene));
  CHECK(std::filesystem::is_regular_file(file));
  scene.start();
  scene.line().adopt();
  CHECK(scene.line().node().ledger().find("s1")->containers.size() == 1);
}

TEST_CASE("state that somebody removes is on disk again, or reported as missing") {
  LineScene scene;
  scene.boot_two(1);
  const auto saved = [&] { return std::filesystem::exists(scene.state_dir() / "a.json"); };
  std::filesystem::remove(scene.state_dir() / "a.json");
  scene.line().check_drift();
  CHECK(saved());
  std::filesystem::remove_all(scene.state_dir());
  std::ofstream(scene.state_dir()) << "not a directory";
  scene.notified.clear();
  for (int i = 0; i < 2; ++i) scene.line().check_drift();
  CHECK(scene.line().node().registry.unsaved().size() == 2);
  CHECK(std::ranges::count(scene.notified, "state-unsaved") == 2);
  std::filesystem::remove(scene.state_dir());
  scene.line().check_drift();
  CHECK(scene.line().node().registry.unsaved().empty());
  CHECK(saved());
}

TEST_CASE("what kubelet's state changed of a runc pod is known after a restart") {
  LineScene scene;
  scene.boot_vm(200, 1);
  REQUIRE(scene.add("b", 200));
  REQUIRE(scene.container("b", "app", CpuSet::range(0, 7), false));
  policy::ContainerFacts app{.id = "app", .cpus = {3}};
  app.period = app.quota = 100000;
  scene.line().handle({{Source::kNri, policy::ledger::PodSeen{.id = "runc", .pod_uid = "uid-runc"}},
                       {Source::kNri, policy::ledger::whole_report("runc", app)}});
  REQUIRE(scene.cpus(210) == "0-2,4-7");  // by its quota
  policy::ledger::KubeletSeen seen;
  seen.shared_pool = scene.machine;
  seen.claims.emplace();
  scene.line().handle({{Source::kKubelet, seen}});
  REQUIRE(scene.cpus(210) == "0-7");
  scene.start();
  scene.calls.writes.clear();
  scene.line().expect(Source::kKubelet);
  scene.line().adopt();
  CHECK(scene.cpus(210) == "0-7");
  CHECK(scene.calls.writes.empty());
}
