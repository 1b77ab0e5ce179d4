// SPDX-License-Identifier: Apache-2.0
// Limits of a sandbox's block I/O by a resource class: written to its cgroup, kept there, given
// back, and what is said where there can be none.
#include <fstream>

#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::Annotations;
using policy::ClassKind;
using tests::LineScene;

namespace {

constexpr const char* kBlockIo = "blockioclass.resource-policy.nri.io";
const std::string kTheirs = "8:0 rbps=max wbps=max riops=50 wiops=max\n";
const std::string kOther = "8:32 rbps=1 wbps=max riops=max wiops=max\n";
const std::string kOurs =
    "8:0 rbps=max wbps=5000 riops=max wiops=max\n"
    "8:16 rbps=max wbps=max riops=7 wiops=max\n";

line::Options with_limits(const std::string& limits = "8:0 wbps=5000, 8:16 riops=7") {
  line::Options options = tests::at_home();
  policy::plan::ResourceClass given;
  given.io_max = policy::parse_io_limits(limits, ',').value();
  options.classes = {.by_name = {{"slow", given}}, .by_annotation = {ClassKind::kBlockIo}};
  return options;
}

/// A VM in a cgroup of its own, with limits of others' for disks 8:0 and 8:32.
struct Limited : LineScene {
  explicit Limited(line::Options options = with_limits()) : LineScene(8, std::move(options)) {
    boot_pod("s1", 100, 3);
    put(kTheirs + kOther);
  }
  void add_pod() {
    policy::ledger::PodSeen pod{.id = "s1"};
    pod.vmm = policy::ProcessId{100, 0};
    pod.annotations = Annotations{{kBlockIo, "slow"}};
    REQUIRE(requests().submit({policy::ledger::Source::kApi, pod}));
  }
  void start_pod() {
    add_pod();
    REQUIRE(container("s1", "app", {2, 3}, true));
  }

  std::filesystem::path file() const { return node.cgroup() / "pods/s1/io.max"; }
  void put(const std::string& text) const { std::ofstream(file()) << text; }
  std::string limits() const { return base::read_file(file()).value_or("none"); }
  long count(const std::string& kind) const { return std::ranges::count(notified, kind); }
  std::string problem(std::size_t i = 0) {
    return line().node().view("s1")->classes.io_max.at(i).problem;
  }
};

}  // namespace

TEST_CASE("a sandbox has the limits of its class, and of other disks those that it had") {
  Limited scene;
  scene.start_pod();
  CHECK(scene.limits() == kOurs + kOther);
  CHECK(scene.verifier().verify().ok());
  CHECK(scene.board().counters().resource_class_writes == 2);
  CHECK(scene.line().check_drift().planned == 0);
}

TEST_CASE("release and removal give back the limits that were there") {
  for (const bool is_removed : {false, true}) {
    Limited scene;
    scene.start_pod();
    REQUIRE((is_removed ? scene.remove("s1") : scene.requests().release("s1")));
    CHECK(scene.limits() == kTheirs + kOther);
  }
}

TEST_CASE("limits that another program changes are drift, and written again") {
  Limited scene;
  scene.start_pod();
  scene.put(kTheirs);
  const auto broken = scene.broken();
  REQUIRE(broken.size() == 2);
  CHECK(broken[0].text ==
        "block I/O limit of disk 8:0 (rbps=max wbps=5000 riops=max wiops=max) of its cgroup is "
        "rbps=max wbps=max riops=50 wiops=max");
  scene.line().check_drift();
  CHECK(scene.limits() == kOurs);
  CHECK(scene.broken().empty());
  scene.put("8:0 rbps=9 wbps=max riops=max wiops=max\n");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.limits() == "8:0 rbps=9 wbps=max riops=max wiops=max\n");
}

TEST_CASE("a reload changes limits, and gives back those of a disk that is gone from the class") {
  Limited scene;
  scene.start_pod();
  scene.line().configure(with_limits("8:16 riops=9"));
  CHECK(scene.limits() == kTheirs + "8:16 rbps=max wbps=max riops=9 wiops=max\n" + kOther);
  scene.line().configure(tests::at_home());
  CHECK(scene.limits() == kTheirs + kOther);
}

TEST_CASE("the next daemon gives back limits of one that was killed, also between two writes") {
  Limited scene;
  struct Killed {};
  const bool is_in_between = GENERATE(false, true);
  int writes = 0;
  scene.cpusets.before_write = [&](const std::string&) {
    if (is_in_between && ++writes == 2) throw Killed{};
  };
  scene.add_pod();
  if (is_in_between) {
    CHECK_THROWS_AS(scene.container("s1", "app", {2, 3}, true), Killed);
    CHECK(scene.limits() == "8:0 rbps=max wbps=5000 riops=max wiops=max\n" + kOther);
  } else {
    REQUIRE(scene.container("s1", "app", {2, 3}, true));
  }
  scene.cpusets.before_write = nullptr;
  scene.start();
  scene.line().adopt();
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.limits() == kTheirs + kOther);
}

TEST_CASE("without the io controller one warning says so for all disks") {
  Limited scene;
  std::filesystem::remove(scene.file());
  scene.start_pod();
  REQUIRE(scene.container("s1", "app", {2, 3, 4}, true));
  CHECK(scene.count("unmanaged") == 1);
  CHECK(scene.problem(0) == "the io controller is not enabled for its cgroup");
  CHECK(scene.problem(1) == scene.problem(0));
  CHECK(line::verdict_name(scene.verifier().verify().verdict()) == "degraded");
  scene.put("");
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.limits() == kOurs);
}

TEST_CASE("a disk that is not there is named, and the others have their limits") {
  Limited scene(with_limits("8:0 wbps=5000, 8:99 wbps=1"));
  scene.start_pod();
  CHECK(scene.limits().starts_with("8:0 rbps=max wbps=5000"));
  CHECK(scene.problem(1) == "there is no disk 8:99");
  CHECK(scene.count("unmanaged") == 1);
}

TEST_CASE("observe mode shows the limits of a class, and writes none") {
  line::Options options = with_limits();
  options.observe = true;
  Limited scene(options);
  scene.start_pod();
  CHECK(scene.limits() == kTheirs + kOther);
  CHECK(scene.line().node().view("s1")->classes.io_max.at(1).wanted ==
        "rbps=max wbps=max riops=7 wiops=max");
}
