// SPDX-License-Identifier: Apache-2.0
// Pods of the daemon before whose VMM cannot be examined: held back until it can.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/catch.hpp"
#include "tests/unit/line/restart.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::Source;
using tests::Restart;

namespace {

/// A daemon has started that cannot examine the process of a's VMM.
struct Hidden : Restart {
  explicit Hidden(std::string file = "task/100/stat") : hidden(std::move(file)) {
    hide();
    for (const int tid : {100, 110}) calls.own[tid] = {3, 5};
    line().adopt();
    line().check_drift();
  }

  void hide() const {
    std::filesystem::rename(proc / hidden, node.proc() / "hidden");
    std::filesystem::create_symlink(proc / hidden, proc / hidden);  // open(2): ELOOP
    if (hidden == "fd") {  // as of a process that is no child of ours: no program, either
      std::filesystem::remove(proc / "exe");
      std::ofstream(proc / "cmdline") << "init";
    }
  }

  void show() const {
    std::filesystem::remove(proc / hidden);
    std::filesystem::rename(node.proc() / "hidden", proc / hidden);
    if (hidden == "fd") node.process(100, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  }

  const std::filesystem::path proc = node.proc() / "100";
  const std::string hidden;
};

}  // namespace

TEST_CASE("at the start a process that cannot be examined is not written to, and its pod is kept") {
  Hidden scene(GENERATE("task/100/stat", "fd"));
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b"});
  CHECK(scene.cpus(100) + ' ' + scene.cpus(110) == "3,5 3,5");
  CHECK(scene.line().node().ledger().exclusive() == CpuSet{3});
  CHECK(scene.cpus(210) == "0-2");
  CHECK(std::ranges::count(scene.notified, "unseen") == 1);
  const auto report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kUnknown);
  CHECK((report.known.sandboxes == 2 && report.seen.sandboxes == 1));
  SECTION("a source that cannot see it, either, has no other pod") {
    scene.board().set_source(Source::kNri, {true, "containerd", false, {{"a", "no memory"}}});
    CHECK(scene.verifier().verify().known.sandboxes == 2);
    scene.board().set_source(Source::kPersist, {true, "/run/vc", false, {{"a", "x"}, {"c", "x"}}});
    CHECK(scene.verifier().verify().known.sandboxes == 3);
    CHECK(scene.line().node().unseen_pods() == line::Ids{"a", "c"});
  }
  SECTION("it is seen to be the VMM, by this daemon or the next") {
    scene.show();
    if (GENERATE(false, true)) scene.start();
    scene.line().adopt();
    scene.line().check_drift();
    CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"a", "b"});
    CHECK(scene.cpus(110) == "3");
    CHECK(scene.verifier().verify().ok());
    REQUIRE(scene.remove("b"));
    REQUIRE(scene.requests().release("a"));
    CHECK(scene.cpus(110) == "0-7");
  }
  SECTION("it ends") {
    std::filesystem::remove_all(scene.proc);
    scene.calls.gone.insert(100);
    scene.line().check_drift();
    CHECK(scene.line().node().ledger().find("a") == nullptr);
    CHECK(scene.cpus(210) == "0-3");
    CHECK_FALSE(std::filesystem::exists(scene.file("a")));
  }
  SECTION("an operator removes the pod") {
    REQUIRE(scene.remove("a"));
    CHECK(scene.line().node().unproved.empty());
    CHECK(scene.cpus(210) == "0-3");
  }
}

TEST_CASE("what an operator removes of a pod whose VMM cannot be examined stays removed") {
  Hidden scene;
  REQUIRE(scene.requests().submit({Source::kApi, policy::ledger::ContainerGone{"a", "app"}}));
  scene.show();
  scene.line().check_drift();
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"a", "b"});
  CHECK(scene.line().node().ledger().exclusive().empty());
}

TEST_CASE("a VMM that could not be examined has what is known of it when a source reports it") {
  Hidden scene;
  scene.show();
  scene.line().handle(
      {Source::kNri, policy::ledger::PodSeen{.id = "a", .vmm = tests::process_id(100)}});
  CHECK(scene.line().node().unproved.empty());
  scene.start();  // what the daemon before has saved
  scene.line().adopt();
  CHECK(scene.cpus(110) == "3");
  REQUIRE(scene.remove("b"));
  REQUIRE(scene.requests().release("a"));
  CHECK(scene.cpus(110) == "0-7");
}

TEST_CASE("a released VMM that a source reports before it can be examined stays released") {
  Hidden scene;
  scene.show();
  scene.line().check_drift();
  REQUIRE(scene.requests().release("a"));
  const std::string released = scene.cpus(110);
  scene.start();
  scene.hide();
  scene.line().adopt();
  scene.line().handle(
      {Source::kNri, policy::ledger::PodSeen{.id = "a", .vmm = tests::process_id(100)}});
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"b"});
  CHECK(scene.requests().reconcile("a").error().code == base::ErrorCode::kUnavailable);
  scene.show();
  if (GENERATE(false, true)) {  // killed meanwhile
    scene.start();
    scene.line().adopt();
  }
  scene.line().handle(scene.kubelet({6}));
  CHECK(scene.cpus(110) == released);
  scene.line().check_drift();
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"a", "b"});
  CHECK(scene.cpus(110) == released);
  CHECK(scene.verifier().verify().released == 1);
}
