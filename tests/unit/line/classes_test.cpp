// SPDX-License-Identifier: Apache-2.0
// Resource classes: written to threads and cgroup, kept there, given back.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "affinity/host/io_weight.hpp"
#include "affinity/line/answer_limit.hpp"
#include "affinity/line/nice.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::Annotations;
using policy::ClassKind;
using policy::CpuSet;
using tests::LineScene;

namespace {

constexpr const char* kScheduling = "scheduling-class.resource-policy.nri.io";
constexpr const char* kBlockIo = "blockioclass.resource-policy.nri.io";

line::Options with_classes(int nice = 5) {
  line::Options options = tests::at_home();
  options.classes = {.by_name = {{"gold", {.nice = nice, .io_weight = 300}}},
                     .by_annotation = {ClassKind::kScheduling, ClassKind::kBlockIo}};
  return options;
}

/// A VM of three vCPUs in a cgroup of its own, whose container owns CPUs 2-3: vCPUs 1 and 2.
struct Classed : LineScene {
  explicit Classed(const Annotations& annotations = {{kScheduling, "gold"}, {kBlockIo, "gold"}},
                   line::Options options = with_classes())
      : LineScene(8, std::move(options)) {
    boot_pod("s1", 100, 3);
    put_weight(100);
    for (const int tid : {110, 111, 112}) calls.nices[tid] = 1;
    request(annotations);
    REQUIRE(container("s1", "app", {2, 3}, true));
  }

  std::filesystem::path cgroup() { return node.cgroup() / "pods/s1"; }
  void put_weight(int weight) {
    std::ofstream(cgroup() / "io.weight") << "default " << weight << "\n8:0 50\n";
  }
  void garble_weight() { std::ofstream(cgroup() / "io.weight") << "default many\n"; }
  void request(const Annotations& annotations) {
    policy::ledger::PodSeen pod{.id = "s1"};
    pod.vmm = policy::ProcessId{100, 0};
    pod.annotations = annotations;
    REQUIRE(requests().submit({policy::ledger::Source::kApi, pod}));
  }
  int weight() { return host::read_io_weight(cgroup()).value_or(-1); }
  std::vector<int> nices() { return {calls.nices[110], calls.nices[111], calls.nices[112]}; }
  line::SandboxView view() { return *line().node().view("s1"); }
  long count(const std::string& kind) const { return std::ranges::count(notified, kind); }
};

using Nices = std::vector<int>;

}  // namespace

TEST_CASE("the vCPUs of a container and its sandbox get what its classes say") {
  Classed scene;
  CHECK(scene.nices() == Nices{1, 5, 5});
  CHECK(scene.weight() == 300);
  CHECK(scene.verifier().verify().ok());
  CHECK(scene.board().counters().resource_class_writes == 3);
  CHECK(scene.line().check_drift().planned == 0);
}

TEST_CASE("without a class asked for nothing is read or written") {
  Classed scene(Annotations{});
  CHECK(scene.nices() == Nices{1, 1, 1});
  CHECK(scene.weight() == 100);
  CHECK(scene.view().classes.nice.empty());
}

TEST_CASE("a vCPU that is plugged later gets the class, and one that serves others loses it") {
  Classed scene;
  scene.plug(100, 3);
  REQUIRE(scene.container("s1", "app", {2, 3, 4}, true));
  CHECK(scene.calls.nices[113] == 5);
  REQUIRE(scene.container("s1", "app", {2}, true));
  CHECK(std::ranges::count(scene.nices(), 5) + (scene.calls.nices[113] == 5 ? 1 : 0) == 1);
}

TEST_CASE("release and removal give back what was there") {
  for (const bool is_removed : {false, true}) {
    Classed scene;
    REQUIRE((is_removed ? scene.remove("s1") : scene.requests().release("s1")));
    CHECK(scene.nices() == Nices{1, 1, 1});
    CHECK(scene.weight() == 100);
  }
}

TEST_CASE("a released sandbox gets its classes again by reconcile") {
  Classed scene;
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.line().check_drift().classes == 0);
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.nices() == Nices{1, 5, 5});
  CHECK(scene.weight() == 300);
}

TEST_CASE("the next daemon knows what the one before it wrote, also where it died in between") {
  Classed scene;
  REQUIRE(scene.requests().release("s1"));
  scene.calls.after_write = [&scene](int) {
    if (scene.calls.nices[111] == 5) throw 1;
  };
  CHECK_THROWS(scene.requests().reconcile("s1"));
  scene.calls.after_write = nullptr;
  CHECK(scene.nices() == Nices{1, 5, 1});
  scene.start();
  scene.line().adopt();
  CHECK(scene.nices() == Nices{1, 5, 5});
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.nices() == Nices{1, 1, 1});
  CHECK(scene.weight() == 100);
}

TEST_CASE("a weight that cannot be read is not taken for the kernel's default") {
  Classed scene(Annotations{});
  scene.garble_weight();
  scene.request({{kBlockIo, "gold"}});
  CHECK(scene.weight() == -1);
  CHECK(scene.view().classes.io_weight.problem == "it cannot be read");

  scene.put_weight(50);
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.weight() == 300);
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.weight() == 50);
}

TEST_CASE("a thread that /proc shows has not ended, whatever a call says of its nice value") {
  Classed scene(Annotations{{kScheduling, "gold"}});
  SECTION("on release") {
    scene.calls.get_nice_faults[111] = {ESRCH, 2};
    scene.calls.nice_faults[112] = {ESRCH, 1};
    REQUIRE(scene.requests().release("s1"));
    CHECK(scene.nices() == Nices{1, 5, 5});
    scene.line().check_drift();
    CHECK(scene.nices() == Nices{1, 1, 1});
  }
  SECTION("when a class comes") {
    scene.calls.get_nice_faults[111] = {ESRCH, 1};
    scene.line().configure(with_classes(9));
    scene.line().check_drift();
    CHECK(scene.nices() == Nices{1, 9, 9});
  }
}

TEST_CASE("what cannot be given back is reported once, and given back when it can be") {
  Classed scene(Annotations{{kScheduling, "gold"}});
  scene.calls.nice_faults[111] = {EPERM, 2};
  REQUIRE(scene.requests().release("s1"));
  scene.line().check_drift();
  CHECK(scene.nices() == Nices{1, 5, 1});
  CHECK(scene.count("unmanaged") == 1);
  scene.line().check_drift();
  CHECK(scene.nices() == Nices{1, 1, 1});
}

TEST_CASE("nothing is written over what cannot be recorded") {
  Classed scene;
  const std::filesystem::path away = scene.state_dir().string() + ".away";
  std::filesystem::rename(scene.state_dir(), away);
  std::ofstream(scene.state_dir()) << "not a directory";
  scene.line().configure(with_classes(9));
  CHECK(scene.nices() == Nices{1, 5, 5});
  CHECK(scene.view().classes.nice[1].problem == "what was there before cannot be recorded");
  std::filesystem::remove(scene.state_dir());
  std::filesystem::rename(away, scene.state_dir());
  scene.line().check_drift();
  scene.line().check_drift();
  CHECK(scene.nices() == Nices{1, 9, 9});
}

TEST_CASE("a value of a class that cannot be read is unknown, not degraded") {
  const auto unread_of = [](Classed& scene) {
    const line::VerifyReport report = scene.verifier().verify();
    CHECK(report.verdict() == line::Verdict::kUnknown);
    for (const line::Finding& finding : report.findings) {
      CHECK(finding.invariant != "classes");
      if (finding.severity == line::Severity::kUnknown) return finding.text;
    }
    return std::string();
  };
  SECTION("nice") {
    Classed scene;
    scene.calls.get_nice_faults[111] = {EPERM, 1000};
    CHECK(unread_of(scene) ==
          "nice 5 of vCPU 1 (thread 111) cannot be read: nice: Operation not permitted");
  }
  SECTION("block I/O weight") {
    Classed scene;
    scene.garble_weight();
    CHECK(unread_of(scene).starts_with("block I/O weight 300 of its cgroup cannot be read: "));
  }
}

TEST_CASE("a weight that cannot be read on release is given back when it can be") {
  Classed scene;
  scene.garble_weight();
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.nices() == Nices{1, 1, 1});
  scene.put_weight(300);
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.weight() == 100);
}

TEST_CASE("what others wrote since is not given back") {
  Classed scene;
  scene.calls.nices[111] = 7;
  scene.put_weight(700);
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.nices() == Nices{1, 7, 1});
  CHECK(scene.weight() == 700);
}

TEST_CASE("values that another program changes are reverted, in the end ever more rarely") {
  Classed scene;
  for (int i = 1; i <= line::AnswerLimit::kAtOnce; ++i) {
    scene.calls.nices[111] = 0;
    scene.line().check_drift();
    CHECK(scene.nices() == Nices{1, 5, 5});
  }
  CHECK(scene.count("drift") == line::AnswerLimit::kAtOnce);
  scene.calls.nices[111] = 0;
  scene.line().check_drift();
  CHECK(scene.nices() == Nices{1, 0, 5});
  const auto findings = scene.verifier().verify().findings;
  REQUIRE_FALSE(findings.empty());
  CHECK(findings[0].subject == "nice 5 of vCPU 1 (thread 111)");
  scene.clock.advance(line::AnswerLimit::kShortest);
  scene.line().check_drift();
  CHECK(scene.nices() == Nices{1, 5, 5});
}

TEST_CASE("drift that nobody has seen yet is a violation") {
  Classed scene;
  scene.put_weight(100);
  const auto broken = scene.broken();
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].text == "block I/O weight 300 of its cgroup is 100");
  scene.line().check_drift();
  CHECK(scene.weight() == 300);
  CHECK(scene.broken().empty());
}

TEST_CASE("a reload changes values, and takes back those of a class that is gone") {
  Classed scene;
  scene.line().configure(with_classes(9));
  CHECK(scene.nices() == Nices{1, 9, 9});
  scene.line().configure(tests::at_home());
  CHECK(scene.nices() == Nices{1, 1, 1});
  CHECK(scene.weight() == 100);
  REQUIRE(scene.view().classes.requests.size() == 2);
  CHECK(scene.view().classes.requests[0].refusal == policy::plan::ClassRefusal::kNotAllowed);
  CHECK(scene.verifier().verify().ok());
}

TEST_CASE("what the kernel refuses is reported once, and retried by reconcile") {
  Classed scene(Annotations{{kScheduling, "gold"}}, with_classes(9));
  scene.calls.nice_faults[111] = {EACCES, 1000};
  scene.line().configure(with_classes(-3));
  scene.line().check_drift();
  scene.line().check_drift();
  CHECK(scene.nices() == Nices{1, 9, -3});
  CHECK(scene.count("unmanaged") == 1);
  scene.calls.nice_faults.clear();
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.nices() == Nices{1, -3, -3});
}

TEST_CASE("a sandbox without the io controller is told so once, and has the rest") {
  Classed scene(Annotations{}, with_classes());
  std::filesystem::remove(scene.cgroup() / "io.weight");
  policy::ledger::PodSeen pod{.id = "s1"};
  pod.annotations = {{kScheduling, "gold"}, {kBlockIo, "gold"}};
  REQUIRE(scene.requests().submit({policy::ledger::Source::kApi, pod}));
  scene.line().check_drift();
  CHECK(scene.nices() == Nices{1, 5, 5});
  CHECK(scene.count("unmanaged") == 1);
  CHECK(scene.view().classes.io_weight.problem ==
        "the io controller is not enabled for its cgroup");
  const auto report = scene.verifier().verify();
  CHECK(report.ok());
  CHECK(line::verdict_name(report.verdict()) == "degraded");
}

TEST_CASE("a thread that got a vCPU's number has the nice value that it was started with again") {
  Classed scene(Annotations{{kScheduling, "gold"}});
  scene.calls.nices[100] = 2;
  scene.node.thread(70, 70, "parent", 1);
  scene.calls.nices[70] = 7;
  const auto give_away = [&scene](int tid, int pid) {
    if (tid != 111 || scene.calls.nices[111] == 7) return;
    scene.node.thread(100, 111, "ended", 1, 7);  // as a file that is still open says
    if (pid != 100) scene.node.end_thread(100, 111);
    scene.node.thread(pid, 111, "stranger", 70, 400000);
  };
  SECTION("one of the same process") {
    scene.calls.after_write = [&](int tid) { give_away(tid, 100); };
    scene.line().configure(with_classes(9));
    CHECK(scene.calls.nices[111] == 2);
  }
  SECTION("one of another process, while the class is written") {
    scene.calls.before_write = [&](int tid) { give_away(tid, 111); };
    scene.line().configure(with_classes(9));
    CHECK(scene.calls.nices[111] == 7);
    CHECK(scene.count("taken-back") == 1);
  }
  SECTION("one of another process, while it is given back") {
    scene.calls.before_write = [&](int tid) { give_away(tid, 111); };
    REQUIRE(scene.requests().release("s1"));
    CHECK(scene.calls.nices[111] == 7);
  }
  SECTION("what it has chosen itself since stays") {
    scene.calls.before_write = [&](int tid) { give_away(tid, 111); };
    scene.calls.after_write = [&](int tid) {
      if (tid == 111) scene.calls.nices[111] = 12;
    };
    scene.line().configure(with_classes(9));
    CHECK(scene.calls.nices[111] == 12);
    CHECK(scene.count("taken-back") == 0);
  }
}

TEST_CASE("a write of a nice value that could not be verified is undone once a stranger is seen") {
  Classed scene(Annotations{{kScheduling, "gold"}});
  scene.node.thread(70, 70, "parent", 1);
  scene.calls.nices[70] = 7;
  scene.calls.after_write = [&](int tid) {
    if (tid == 111) scene.node.write("proc/100/task/111/stat", "");
  };
  scene.line().configure(with_classes(9));
  REQUIRE(scene.calls.nices[111] == 9);
  scene.calls.after_write = nullptr;
  scene.node.end_thread(100, 111);
  scene.node.thread(111, 111, "stranger", 70);
  scene.line().check_drift();
  CHECK(scene.calls.nices[111] == 7);
  CHECK(scene.count("taken-back") == 1);
  scene.calls.nices[111] = 9;
  scene.line().check_drift();
  CHECK(scene.calls.nices[111] == 9);
}

TEST_CASE("a nice value that is not the one that was read is not written over") {
  tests::FakeNode node;
  tests::FakeCalls calls{CpuSet::range(0, 7)};
  node.thread(100, 111, "CPU 0/KVM");
  calls.nices[111] = 12;
  base::ThreadStats stats(node.proc());
  const line::NiceWrite write{{100, 111, 100111}, 9};
  CHECK(line::write_nice(write, 1, calls, stats).done.error().code == base::ErrorCode::kTransient);
  CHECK(calls.nices[111] == 12);
  CHECK(line::write_nice(write, 12, calls, stats).done);
  CHECK(calls.nices[111] == 9);
}

TEST_CASE("the kernel's nice values are those of one thread") {
  host::KernelAffinityCalls calls;
  const auto before = calls.nice(::gettid());
  base::Result<int> after = 0;
  std::thread([&calls, &after] {
    const auto done = calls.set_nice({::getpid(), ::gettid(), 0}, 19);
    after = done ? calls.nice(::gettid()) : unexpected(done.error());
  }).join();
  CHECK(after == 19);
  CHECK(calls.nice(::gettid()) == before);
  CHECK(calls.nice(-1).error().code == base::ErrorCode::kGone);
}

TEST_CASE("observe mode plans classes, and writes nothing") {
  line::Options options = with_classes();
  options.observe = true;
  Classed scene(Annotations{{kScheduling, "gold"}, {kBlockIo, "gold"}}, options);
  CHECK(scene.nices() == Nices{1, 1, 1});
  CHECK(scene.weight() == 100);
  CHECK(scene.view().classes.io_weight.wanted == 300);
}
