// SPDX-License-Identifier: Apache-2.0
// kill -9 of the daemon in the middle of a run: before and after each write to a thread and to a
// cgroup. The next daemon completes what is still wanted, and a release leaves all as it was.
#include <array>
#include <fstream>
#include <sstream>

#include "affinity/host/io_weight.hpp"
#include "tests/catch.hpp"
#include "tests/scissors.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using tests::LineScene;

namespace {

constexpr const char* kKataCgroup = "pods/s1";
constexpr std::array kThreads = {100, 101, 110, 111, 112};

line::Options all_options(bool manages) {
  using policy::ClassKind;
  line::Options options;
  options.settings.manage_cgroup = manages;
  options.settings.housekeeping.kind = policy::plan::Housekeeping::Kind::kSharedPool;
  options.classes = {.by_name = {{"gold", {.nice = 5, .io_weight = 300}}},
                     .by_annotation = {ClassKind::kScheduling, ClassKind::kBlockIo}};
  return options;
}

/// A VM of three vCPUs, each thread of which has a mask and a nice value of its own, in a cgroup
/// with a weight. Nobody has reported it yet.
struct Cut : LineScene {
  explicit Cut(bool manages = true) : LineScene(8, all_options(manages)) {
    boot_pod("s1", 100, 3);
    if (manages) cpusets.make(kKataCgroup, {2, 3, 4, 5});
    std::ofstream(node.cgroup() / kKataCgroup / "io.weight") << "default 100\n";
    for (const int tid : kThreads) {
      calls.nices[tid] = 1;
      calls.own[tid] = CpuSet::range(0, 6);
    }
    before = text();
    const auto snip = [this](const auto&) { scissors.snip(); };
    calls.before_write = calls.after_write = snip;
    cpusets.before_write = cpusets.after_write = snip;
  }

  /// As a source does, whether or not the daemon knows the pod.
  void report(const CpuSet& cpus) {
    policy::ledger::PodSeen pod{.id = "s1"};
    pod.vmm = policy::ProcessId{100, 0};
    pod.annotations = {{"scheduling-class.resource-policy.nri.io", "gold"},
                       {"blockioclass.resource-policy.nri.io", "gold"}};
    const auto reported = requests().submit({policy::ledger::Source::kApi, pod});
    REQUIRE(reported);
    const auto placed = container("s1", "app", cpus, true);
    REQUIRE(placed);
  }
  void release() {
    const auto released = requests().release("s1");
    REQUIRE(released);
  }
  void restart() {
    start();
    line().adopt();
  }

  /// What the daemon may have changed, as others see it.
  std::string text() const {
    std::ostringstream text;
    text << policy::format_list(cpusets.configured(kKataCgroup)) << " weight "
         << host::read_io_weight(node.cgroup() / kKataCgroup).value_or(-1) << '\n';
    for (const int tid : kThreads) {
      text << tid << ": " << cpus(tid) << " nice " << calls.nices.at(tid) << '\n';
    }
    return text.str();
  }

  tests::Scissors scissors;
  std::string before;
};

using Step = void (*)(Cut&);

void boot(Cut& scene) { scene.report({2, 3}); }
void change(Cut& scene) { scene.report({4, 5}); }
void release(Cut& scene) { scene.release(); }

/// What happened before, what is cut, and which CPUs the container has then.
struct Way {
  std::vector<Step> before;
  Step cut;
  CpuSet cpus;
};

constexpr int kFewest = 8;  ///< places on each of these ways

const std::array kWays = {Way{{}, boot, {2, 3}}, Way{{boot}, change, {4, 5}},
                          Way{{boot, change}, release, {4, 5}}};

/// Kills the daemon at each place of the step, until it comes to the end alive. `then` has the
/// node without a daemon.
template <typename Then>
int kill_everywhere(bool manages, const Way& way, const Then& then) {
  for (int place = 0;; ++place) {
    CAPTURE(place);
    Cut scene(manages);
    for (const Step step : way.before) step(scene);
    scene.scissors.set(place);
    try {
      way.cut(scene);
      return place;
    } catch (const tests::Killed&) {
      then(scene);
    }
  }
}

}  // namespace

TEST_CASE("killed at any write of a run, the next daemon's release leaves all as it was") {
  const bool manages = GENERATE(false, true);
  for (const Way& way : kWays) {
    const int places = kill_everywhere(manages, way, [&](Cut& scene) {
      scene.restart();
      scene.report(way.cpus);
      scene.release();
      CHECK(scene.text() == scene.before);
    });
    CHECK(places > kFewest);
  }
}

TEST_CASE("killed at any write of a run, a daemon that is to do nothing leaves all as it was") {
  const bool manages = GENERATE(false, true);
  for (const Way& way : kWays) {
    kill_everywhere(manages, way, [](Cut& scene) {
      line::Options off = all_options(true);
      off.enable = false;
      scene.start();
      scene.line().configure(off);
      scene.line().adopt();
      CHECK(scene.text() == scene.before);
    });
  }
}

TEST_CASE("killed at any write of a run, the next daemon completes it") {
  const bool manages = GENERATE(false, true);
  for (const Way& way : kWays) {
    Cut alive(manages);
    for (const Step step : way.before) step(alive);
    way.cut(alive);
    const std::string planned = alive.text();
    kill_everywhere(manages, way, [&](Cut& scene) {
      scene.restart();
      scene.report(way.cpus);
      CHECK(scene.text() == planned);
      CHECK(scene.verifier().verify().ok());
      scene.restart();
      scene.release();
      CHECK(scene.text() == scene.before);
    });
  }
}
