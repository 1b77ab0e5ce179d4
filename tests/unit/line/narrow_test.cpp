// SPDX-License-Identifier: Apache-2.0
// The line in two halves: narrow() before a container runtime is answered, finish() when it has
// done its part.
#include <algorithm>
#include <cerrno>

#include "affinity/line/line.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using namespace std::chrono_literals;
using policy::CpuSet;
using tests::LineScene;

namespace {

policy::ledger::Event container(const std::string& sandbox, const std::string& id, CpuSet cpus,
                                bool exclusive) {
  policy::ContainerFacts facts;
  facts.id = id;
  facts.cpus = std::move(cpus);
  return {policy::ledger::Source::kNri, policy::ledger::whole_report(sandbox, facts, exclusive)};
}

}  // namespace

TEST_CASE("narrow: a neighbour leaves CPUs that became exclusive, and no thread gets more") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s1", "shared", {0, 1}, false));
  REQUIRE(scene.container("s2", "shared", CpuSet::range(0, 7), false));
  const auto outcome = scene.line().narrow({container("s1", "app", {4, 5}, true)}, 50ms);
  CHECK(outcome.writes == 4);
  CHECK(outcome.late == 0);
  CHECK(scene.cpus(210) == "0-3,6-7");
  CHECK(scene.cpus(111) == "0-1");
  CHECK(scene.cpus(112) == "0-1");
  scene.line().finish("s1");
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.cpus(112) == "5");
  CHECK(scene.line().finish({}).planned == 0);
}

TEST_CASE("narrow: an unreadable mask is narrowed nevertheless") {
  for (const int number : {EPERM, ESRCH}) {
    LineScene scene;
    scene.boot_two(1, "s1", "s2");
    REQUIRE(scene.container("s2", "shared", CpuSet::range(0, 7), false));
    scene.calls.get_faults[210] = {number, 1};
    scene.line().narrow({container("s1", "app", {4, 5}, true)}, 50ms);
    CHECK(scene.cpus(210) == "0-3,6-7");
  }
}

TEST_CASE("narrow: a sandbox that only widens is not observed, and waits for finish") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "c", {0, 1}, false));
  scene.calls.writes.clear();
  const auto outcome = scene.line().narrow({container("s1", "c", {0, 1, 2}, false)}, 50ms);
  CHECK(outcome.planned == 0);
  CHECK(scene.calls.writes.empty());
  CHECK(scene.cpus(110) == "0-1");
  scene.line().refresh("s1");
  CHECK(scene.cpus(110) == "0-1");
  CHECK(scene.line().finish("s1").planned == 1);
  CHECK(scene.cpus(110) == "0-2");
}

TEST_CASE("narrow: a sandbox that widens leaves what another one got at the same moment") {
  LineScene scene;
  scene.boot_two(2, "s1", "s2");
  REQUIRE(scene.container("s1", "c", {0, 1}, false));
  scene.line().narrow({container("s1", "c", {0, 1, 2}, false), container("s2", "app", {1}, true)},
                      50ms);
  CHECK(scene.cpus(110) == "0");
}

TEST_CASE("narrow: a moving set keeps what is common, then continues") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "c", {0, 1, 2}, false));
  scene.line().narrow({container("s1", "c", {2, 3}, false)}, 50ms);
  CHECK(scene.cpus(110) == "2");
  scene.line().finish("s1");
  CHECK(scene.cpus(110) == "2-3");
}

TEST_CASE("narrow: a thread with only foreign CPUs moves at once, others stay") {
  LineScene scene;
  scene.boot_two(1, "s1", "s2");
  REQUIRE(scene.container("s1", "c", {4, 5}, false));
  REQUIRE(scene.container("s2", "c", {6, 7}, false));
  scene.line().narrow({container("s1", "c", {0, 1}, false)}, 50ms);
  CHECK(scene.cpus(110) == "4-5");
  scene.line().narrow({container("s2", "app", {4, 5}, true)}, 50ms);
  CHECK(scene.cpus(110) == "0-1");
}

TEST_CASE("narrow: out of time, the rest is done after the response") {
  LineScene scene;
  scene.boot_two(2, "s1", "s2");
  const auto outcome = scene.line().narrow({container("s1", "app", {4, 5}, true)}, 0ns);
  CHECK(outcome.late == 2);
  CHECK(outcome.writes == 0);
  scene.line().finish("s1");
  CHECK(scene.cpus(210) == "0-3,6-7");
  CHECK(scene.cpus(111) == "5");
}

TEST_CASE("narrow: a sandbox not affected by a new owner is planned at the end") {
  LineScene scene;
  scene.boot_two(1, "s1", "s2");
  REQUIRE(scene.container("s1", "c", {0, 1}, false));
  REQUIRE(scene.container("s2", "c", {0, 1, 2}, false));
  scene.line().narrow({container("runc", "c", {2}, true)}, 50ms);
  CHECK(scene.cpus(210) == "0-1");
  const auto outcome = scene.line().narrow({container("runc", "c", {6}, true)}, 50ms);
  CHECK(outcome.planned == 0);
  CHECK(scene.cpus(210) == "0-1");
  scene.line().refresh("s2");
  CHECK(scene.cpus(210) == "0-1");
  scene.line().finish("runc");
  CHECK(scene.cpus(210) == "0-2");
  CHECK(scene.cpus(110) == "0-1");
}

TEST_CASE("narrow: a sandbox that was refreshed between the halves gets what others left") {
  LineScene scene;
  scene.boot_two(1, "s1", "s2");
  REQUIRE(scene.container("s2", "c", {0, 1, 2}, false));
  scene.line().handle({container("runc", "c", {2}, true)});
  REQUIRE(scene.cpus(210) == "0-1");
  scene.line().narrow({container("runc", "c", {6}, true)}, 50ms);
  scene.line().refresh("s2");  // no second half was due to it
  CHECK(scene.cpus(210) == "0-1");
  scene.line().finish("runc");
  CHECK(scene.cpus(210) == "0-2");
}

TEST_CASE("narrow: an unfinished event is finished by the drift check, and saved") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  scene.line().narrow({container("s1", "c", {0, 1}, false)}, 50ms);
  scene.line().narrow({container("runc", "c", {6}, true)}, 50ms);
  scene.line().narrow({container("s1", "c", {0, 1, 2}, false)}, 50ms);
  scene.line().check_drift();
  CHECK(scene.cpus(110) == "0-2");
  scene.start();
  scene.line().adopt();
  CHECK(scene.line().node().ledger().exclusive_to_others("s1") == CpuSet{6});
}

TEST_CASE("narrow: in observe mode nothing is written") {
  line::Options options = tests::at_home();
  options.observe = true;
  LineScene scene(8, options);
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  scene.line().narrow({container("s1", "c", {0, 1}, false)}, 50ms);
  scene.line().finish("s1");
  CHECK(scene.calls.writes.empty());
}

TEST_CASE("many events are one run, with the result of single reports") {
  LineScene scene;
  for (const int pid : {100, 200}) scene.boot_vm(pid, 2);
  policy::ledger::PodSeen first{.id = "s1", .vmm = tests::process_id(100)},
      second{.id = "s2", .vmm = tests::process_id(200)};
  std::vector<policy::ledger::Event> events = {{policy::ledger::Source::kNri, first},
                                               container("s1", "app", {4, 5}, true),
                                               {policy::ledger::Source::kNri, second},
                                               container("s2", "c", CpuSet::range(0, 7), false)};
  for (int i = 0; i < 50; ++i) {
    events.push_back(container("runc" + std::to_string(i), "c", {6}, i == 7));
  }
  const auto outcome = scene.line().handle(events);
  CHECK(outcome.planned == 2);
  CHECK(scene.board().counters().runs == 1);
  CHECK(scene.cpus(111) == "5");
  CHECK(scene.cpus(210) == "0-3,7");
  CHECK(scene.line().reconcile_all().writes == 0);
  scene.start();
  scene.line().adopt();
  CHECK(scene.line().node().ledger().pods().size() == 52);
}

TEST_CASE("narrow: of several events the last one counts before anything is written") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "c", {0, 1}, false));
  scene.calls.writes.clear();
  scene.line().narrow({container("s1", "c", {0}, false), container("s1", "c", {0, 1, 2}, false)},
                      50ms);
  CHECK(scene.calls.writes.empty());
  scene.line().finish("s1");
  CHECK(scene.cpus(110) == "0-2");
}

TEST_CASE("a VM claimed by a second pod stays the first one's, and both are named") {
  LineScene scene;
  scene.boot_vm(100, 3);
  std::vector<std::string> said;
  const auto listening =
      scene.board().feed().subscribe([&](const board::Notification& notification) {
        if (notification.kind == board::NotificationKind::kVmmRefused)
          said.push_back(notification.text);
      });
  const auto pod = [](const std::string& id) {
    return policy::ledger::Event{
        policy::ledger::Source::kNri,
        policy::ledger::PodSeen{.id = id, .pod_name = "shop/" + id, .vmm = tests::process_id(100)}};
  };
  scene.line().narrow({pod("a"), container("a", "app", {4, 5}, true)}, 50ms);
  scene.line().finish("a");
  CHECK(scene.cpus(111) == "4");
  CHECK(said.empty());
  scene.line().narrow({pod("b"), container("b", "app", {6, 7}, true)}, 50ms);
  scene.line().finish("b");
  CHECK(scene.cpus(111) == "4");
  CHECK(scene.cpus(112) == "5");
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"a"});
  CHECK(scene.line().node().ledger().exclusive() == CpuSet{4, 5, 6, 7});
  CHECK(said == std::vector<std::string>{
                    R"(process 100 is the VM of sandbox "a" (shop/a), not of "b" (shop/b))"});
  CHECK(scene.log_lines.find("two pods claim one VM") != std::string::npos);
}

TEST_CASE("a VM that two pods claim is the second one's when the first has gone") {
  LineScene scene;
  scene.boot_vm(100, 3);
  const auto pod = [](const std::string& id) {
    return policy::ledger::Event{policy::ledger::Source::kNri,
                                 policy::ledger::PodSeen{.id = id, .vmm = tests::process_id(100)}};
  };
  scene.line().handle({pod("a"), container("a", "app", {4, 5}, true)});
  scene.line().handle({pod("b"), container("b", "app", {6, 7}, true)});
  const auto refused = [&scene] {
    const auto findings = scene.verifier().verify().findings;
    return std::ranges::count(findings, "vmm-refused", &line::Finding::reason);
  };
  CHECK(refused() == 1);
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"a"});
  SECTION("by an event of its own") {
    scene.line().handle({policy::ledger::Source::kNri, policy::ledger::PodGone{"a"}});
  }
  SECTION("by events in two halves") {
    scene.line().narrow({{policy::ledger::Source::kNri, policy::ledger::PodGone{"a"}}}, 50ms);
    scene.line().finish("a");
  }
  SECTION("by the drift check") {
    scene.line().narrow({{policy::ledger::Source::kNri, policy::ledger::PodGone{"a"}}}, 50ms);
    scene.line().check_drift();
  }
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b"});
  CHECK(scene.cpus(111) == "6");
  CHECK(scene.cpus(112) == "7");
  CHECK(refused() == 0);
}

TEST_CASE("a claim to a VM is dropped with that VM, and with the pod that had it refused") {
  LineScene scene;
  scene.boot_vm(100, 3);
  const bool has_ended = GENERATE(true, false);
  for (const char* id : {"a", "b"}) {
    scene.line().handle({policy::ledger::Source::kNri,
                         policy::ledger::PodSeen{.id = id, .vmm = tests::process_id(100)}});
  }
  CHECK(scene.line().node().registry.refused_vmms().contains("b"));
  if (has_ended) {
    scene.line().vmm_ended("a", tests::process_id(100));
  } else {
    scene.line().handle({policy::ledger::Source::kNri, policy::ledger::PodGone{"b"}});
  }
  CHECK(scene.line().node().registry.refused_vmms().empty());
  scene.line().check_drift();
  CHECK(scene.line().node().sandbox_ids().empty() == has_ended);
}
