// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/proof.hpp"

#include <boost/json/parse.hpp>

#include "affinity/cli/selftest/static_pods.hpp"
#include "tests/catch.hpp"
#include "tests/test_clock.hpp"
#include "tests/unit/cli/selftest/scene.hpp"

using namespace ka;
using namespace ka::cli::selftest;
using tests::SelftestNode;

namespace {

constexpr const char* kVm = "kata-affinity-selftest-vm";
const Choice kChoice{.runtime_class = "kata", .image = "image", .cpus = 2, .own = {}, .pool = {}};
constexpr const char* kShared = "kata-affinity-selftest-shared";

boost::json::object sandbox_of(const SelftestNode& node, const std::string& uid) {
  boost::json::array threads;
  bool isolated = true;
  for (const int tid : {90, 100, 101, 102, 103}) {
    const auto& mask = node.masks().at(tid);
    threads.push_back({{"tid", tid}, {"actual", policy::format_list(mask)}});
    isolated = isolated && (mask.size() == 1 || !mask.intersects(tests::cpus("2-3")));
  }
  boost::json::array containers{{{"exclusive", true},
                                 {"isolated", isolated},
                                 {"obstacles", boost::json::array{{{"reason", "housekeeping"}}}}}};
  boost::json::object sandbox{{"id", "s"}, {"pod_uid", uid}};
  sandbox["threads"] = std::move(threads);
  sandbox["vcpus"] = boost::json::array{{{"role", "dedicated"}, {"cpus", "2-3"}}};
  sandbox["containers"] = std::move(containers);
  return sandbox;
}

/// What the daemon says of the node when it is right.
boost::json::object answer_to(const SelftestNode& node, const std::string& target) {
  const std::string uid = node.uid_of(kVm);
  if (target == "/v1/verify") return {{"verdict", "ok"}};
  if (target == "/v1/node") {
    return {{"exclusive", uid.empty() ? "" : "2-3"},
            {"shared_pool", uid.empty() ? "0-7" : "0-1,4-7"}};
  }
  boost::json::array sandboxes;
  if (!uid.empty()) sandboxes.emplace_back(sandbox_of(node, uid));
  return {{"sandboxes", std::move(sandboxes)}};
}

/// A self-test on a node where everything follows the manifests within a second.
struct Scene {
  SelftestNode node;
  tests::TestClock clock;  // time passes only while it is waited
  const base::Clock::Time began = clock.now();
  Reader reader = node.reader();
  Record record{node.root().path() / "record.json"};
  StaticPods launcher{*find_kubelet(node.root().path()), record};
  Report report;
  bool kubelet_works = true;
  bool pods_end = true;
  std::vector<std::string> vm_masks{"0-1,4-7", "0-1,4-7", "2", "3"};
  int signal_after = -1;          ///< pauses
  bool signal_pending = false;    ///< noticed without a pause
  bool signal_in_period = false;  ///< while CPUs are busy
  bool signal_in_call = false;    ///< of the daemon, which hangs
  policy::CpuSet busy;
  std::vector<std::string> occupied;
  std::vector<std::string> posts;
  bool released = false;
  std::string guest_cpus = "1-2";            ///< of the container; empty: its image has no program
  std::chrono::nanoseconds ran{}, waited{};  ///< of each thread

  void run_manifests() {
    const std::string uid = node.uid_of(kVm), shared = node.uid_of(kShared);
    if (!pods_end && uid.empty() && shared.empty()) return;
    node.stop_all();
    if (!kubelet_works) return;
    if (!shared.empty()) node.start_runc(shared, uid.empty() ? "0-7" : "0-1,4-7");
    if (!uid.empty()) start_vm(uid);
    node.write_state(uid);
  }

  /// Each thread waits for 3 ms of a second while it may leave the pod's CPUs, else for 1 ms.
  void start_vm(const std::string& uid) {
    const std::vector<std::string> free(vm_masks.size(), "0-7");
    node.start_vm(uid, released ? free : vm_masks);
    for (const int tid : {90, 100, 101, 102, 103}) {
      node.root().write(fmt::format("proc/{}/schedstat", tid),
                        fmt::format("{} {} 7\n", ran.count(), waited.count()));
    }
  }

  bool pause(std::chrono::milliseconds time) {
    if (time.count() == 0) return !std::exchange(signal_pending, false);
    clock.advance(time);
    ran += time / 10;
    waited += time / 1000 * (released ? 3 : 1);
    run_manifests();
    if (signal_in_period && !busy.empty()) return false;
    return signal_after-- != 0;
  }

  base::Result<boost::json::object> call(const std::string& method, const std::string& target) {
    if (std::exchange(signal_in_call, false)) {
      signal_pending = true;
      return base::fail(base::ErrorCode::kUnavailable, "interrupted");
    }
    const bool changes = method == "POST" && target != "/v1/verify";
    if (!changes) return answer_to(node, target);
    posts.push_back(target);
    released = target.starts_with("/v1/release");
    run_manifests();
    return boost::json::object();
  }

  Proof proof() {
    const Dependencies dependencies{
        .reader = reader,
        .launcher = launcher,
        .call = [this](const char* method, const char* target) { return call(method, target); },
        .run_inside = [this](const std::string& container) { return run_inside(container); },
        .clock = clock,
        .pause = [this](std::chrono::milliseconds time) { return pause(time); },
        .occupy = [this](const policy::CpuSet& cpus) { return occupy(cpus); },
        .announce = [](const std::string&) {},
        .limit_calls = [](std::chrono::seconds) {}};
    return {dependencies, std::chrono::seconds(60), report};
  }

  base::Result<std::string> run_inside(const std::string& container) const {
    if (container != std::string(64, 'b') || guest_cpus.empty()) {
      return base::fail(base::ErrorCode::kConflict, "no such program");
    }
    return "Cpus_allowed_list:\t" + guest_cpus +
           "\nprocessor: 0\napicid: 0\nprocessor: 1\napicid: 1\nprocessor: 2\napicid: 2\n";
  }

  /// Remembers which CPUs are busy until the handle is destroyed.
  std::shared_ptr<void> occupy(const policy::CpuSet& cpus) {
    busy = cpus;
    occupied.push_back(policy::format_list(cpus));
    return {nullptr, [this](void*) { busy = {}; }};
  }

  void run(bool demo = false) { proof().run(kChoice, demo); }

  bool is_clean() const {
    return base::list_directory(node.root().path() / SelftestNode::kManifests)->empty() &&
           !std::filesystem::exists(node.root().path() / "record.json");
  }
};

}  // namespace

TEST_CASE("self-test: kept, and nothing is left") {
  Scene scene;
  scene.run();
  CHECK(scene.report.reason.empty());
  CHECK(scene.report.verdict == Verdict::kKept);
  CHECK(scene.report.steps.size() == 8);
  CHECK(scene.is_clean());
}

TEST_CASE("self-test: the guest decides where it can be looked at") {
  Scene scene;
  const auto guests = [&scene] {
    const auto is_guests = [](const Step& step) {
      return step.text == "the guest confines the container";
    };
    return std::ranges::find_if(scene.report.steps, is_guests)->findings.front().text;
  };
  SECTION("held on the floating vCPU, for good") {
    scene.guest_cpus = "0";
    scene.run();
    CHECK(scene.report.verdict == Verdict::kViolated);
    CHECK(scene.report.reason == guests());
  }
  SECTION("allowed on every vCPU") {
    scene.guest_cpus = "0-2";
    scene.run();
    CHECK(scene.report.verdict == Verdict::kDegraded);
  }
  SECTION("not seen, nothing is known of it") {
    scene.guest_cpus.clear();
    scene.run();
    CHECK(scene.report.verdict == Verdict::kDegraded);
    CHECK(scene.report.reason == "in its guest the container was not seen: no such program");
  }
  CHECK(scene.is_clean());
}

TEST_CASE("self-test: pinned but shared is degraded") {
  Scene scene;
  scene.vm_masks[0] = "2-3";
  scene.run();
  CHECK(scene.report.verdict == Verdict::kDegraded);
  CHECK(scene.report.reason.starts_with("not isolated: 1 other"));
  CHECK(exit_of(scene.report.verdict) == cli::Exit::kDone);
  CHECK(scene.is_clean());
}

TEST_CASE("self-test: pods that do not end are a violation, and named after what came first") {
  Scene scene;
  scene.pods_end = false;
  std::string first;
  SECTION("nothing else was wrong") {}
  SECTION("it was degraded") { scene.vm_masks[0] = "2-3"; }
  SECTION("it was violated") {
    scene.vm_masks[3] = "2-3";
    first = "no vCPU is bound to CPU 3";
  }
  scene.run();
  CHECK(scene.report.verdict == Verdict::kViolated);
  CHECK(scene.report.reason.starts_with(first));
  CHECK(scene.report.reason.ends_with("tasks or processes of the self-test's pods still run"));
  CHECK(std::filesystem::exists(scene.node.root().path() / "record.json"));
}

TEST_CASE("self-test: an unbound vCPU is a violation") {
  Scene scene;
  scene.vm_masks[3] = "2-3";
  scene.run();
  CHECK(scene.report.verdict == Verdict::kViolated);
  CHECK(scene.report.reason.starts_with("no vCPU is bound to CPU 3"));
  CHECK(exit_of(scene.report.verdict) == cli::Exit::kNo);
  CHECK(scene.is_clean());
}

TEST_CASE(
    "self-test: a kubelet that starts nothing is no violation, and costs the time limit twice") {
  Scene scene;
  scene.kubelet_works = false;
  scene.run();
  CHECK(scene.report.verdict == Verdict::kCannotRun);
  CHECK(scene.report.reason.find("log of kubelet") != std::string::npos);
  CHECK(exit_of(scene.report.verdict) == cli::Exit::kWrong);
  CHECK(scene.clock.now() - scene.began < std::chrono::seconds(125));
  CHECK(scene.is_clean());
}

TEST_CASE("self-test: a signal ends it, and its pods are removed") {
  Scene scene;
  scene.signal_after = 1;
  scene.run();
  CHECK(scene.report.verdict == Verdict::kInterrupted);
  CHECK(scene.is_clean());
}

TEST_CASE("self-test: a signal is noticed though no step waits") {
  Scene scene;
  scene.signal_pending = true;
  scene.run();
  CHECK(scene.report.verdict == Verdict::kInterrupted);
  CHECK(scene.report.steps.size() == 1);
  CHECK(scene.is_clean());
}

TEST_CASE("self-test: a signal ends the call during which it arrives") {
  Scene scene;
  SECTION("of the daemon") {
    scene.signal_in_call = true;
    scene.run();
    CHECK(scene.is_clean());
  }
  SECTION("that starts a pod") {
    scene.signal_pending = true;
    std::filesystem::remove_all(scene.node.root().path() / SelftestNode::kManifests);
    scene.run();
  }
  CHECK(scene.report.verdict == Verdict::kInterrupted);
  CHECK(scene.report.reason == "interrupted by a signal");
}

TEST_CASE("self-test: the next run removes the pods of a killed one") {
  Scene scene;
  const Pod pod = vm_pod(kChoice, "left");
  REQUIRE(scene.record.place(scene.node.root().path() / SelftestNode::kManifests, pod));
  scene.run_manifests();
  CHECK(scene.proof().remove_leftovers());
  CHECK(scene.report.steps.size() == 1);
  CHECK(scene.report.reason.empty());
  CHECK(scene.is_clean());
}

TEST_CASE("self-test: pods that do not end stay recorded") {
  Scene scene;
  const Pod pod = vm_pod(kChoice, "left");
  REQUIRE(scene.record.place(scene.node.root().path() / SelftestNode::kManifests, pod));
  scene.node.write_state("left");
  scene.kubelet_works = false;
  CHECK_FALSE(scene.proof().remove_leftovers());
  CHECK(scene.report.verdict == Verdict::kCannotRun);
  CHECK(scene.report.reason == "CPUs 2-3 are not back in the shared pool");
  CHECK(std::filesystem::exists(scene.node.root().path() / "record.json"));
}

TEST_CASE("self-test: the report names each witness, as text and as JSON") {
  Scene scene;
  scene.report.node = {{"kernel", "6.12"}};
  scene.run();
  const auto document = to_json(scene.report);
  CHECK(document.at("verdict") == "kept");
  CHECK(document.at("steps").at(1).at("findings").at(0).at("by") == "kubelet");
  const std::string text = describe(scene.report);
  CHECK(text.starts_with("self-test: kept\n"));
  CHECK(text.find("ok        kubelet  the pod has CPUs 2-3 by kubelet's state") !=
        std::string::npos);
}

TEST_CASE("self-test, demo: waiting is measured under load, released and then placed") {
  Scene scene;
  scene.run(true);
  CHECK(scene.report.reason.empty());
  CHECK(scene.posts == std::vector<std::string>{"/v1/release?id=" + std::string(64, 'a'),
                                                "/v1/reconcile?id=" + std::string(64, 'a')});
  CHECK(scene.occupied == std::vector<std::string>{"0-1,4-7", "0-1,4-7"});
  CHECK(scene.busy.empty());
  REQUIRE(scene.report.demo);
  const auto document = to_json(*scene.report.demo);
  CHECK(document.at("busy_cpus") == "0-1,4-7");
  const auto& threads = document.at("threads").as_array();
  REQUIRE(threads.size() == 5);
  const auto& vcpu = threads.at(3);
  CHECK(vcpu.at("part") == "vCPU");
  CHECK(vcpu.at("before").at("cpus") == "0-7");
  CHECK(vcpu.at("before").at("waited_ms") == 30.0);
  CHECK(vcpu.at("before").at("ran_ms") == 1000.0);
  CHECK(vcpu.at("after").at("cpus") == "2");
  CHECK(vcpu.at("after").at("waited_ms") == 10.0);
  CHECK(describe(*scene.report.demo).find("CPUs 0-1,4-7 are busy") != std::string::npos);
  CHECK(scene.is_clean());
}

TEST_CASE("self-test, demo: a signal ends the load and removes the pods") {
  Scene scene;
  scene.signal_in_period = true;
  scene.run(true);
  CHECK(scene.report.verdict == Verdict::kInterrupted);
  CHECK_FALSE(scene.report.demo);
  CHECK(scene.occupied.size() == 1);
  CHECK(scene.posts.back().starts_with("/v1/reconcile"));
  CHECK(scene.busy.empty());
  CHECK(scene.is_clean());
}

TEST_CASE("self-test, demo: threads that do not run are not measured") {
  Scene scene;
  scene.vm_masks[3] = "2-3";
  scene.run(true);
  CHECK(scene.report.verdict == Verdict::kViolated);
  CHECK_FALSE(scene.report.demo);
  CHECK(scene.occupied.empty());
}
