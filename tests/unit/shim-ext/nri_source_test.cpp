// SPDX-License-Identifier: Apache-2.0
// What the container runtime's word makes of the node, in which order and within which time: with
// no socket, and on a clock of the test.
#include "shim-ext/nri/nri_source.hpp"

#include <functional>
#include <string>

#include "tests/catch.hpp"
#include "tests/test_clock.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/shim-ext/recording_node.hpp"

using namespace ka;
using namespace std::chrono_literals;
using policy::ledger::Event;
using policy::ledger::Source;
using source::Notice;
using Lines = std::vector<std::string>;

namespace {

Event pod(const std::string& id) { return {Source::kNri, policy::ledger::PodSeen{.id = id}}; }
Event container(const std::string& pod, const std::string& id) {
  return {Source::kNri, policy::ledger::ContainerSeen{.sandbox = pod, .id = id}};
}

struct Scene final : nri::Containers {
  nri::Adjustment adjust(const nri::CreateRequest& request) override {
    node.add("adjust " + request.container);
    return {{{"/from", "/to"}}, {}};
  }
  void await_guest(const std::string& sandbox, const std::string& container,
                   std::function<void()> then) override {
    node.add("await " + sandbox + '/' + container);
    go_on = std::move(then);
  }
  void forget_gone() override { node.add("forget gone"); }

  tests::TestClock clock;
  tests::RecordingNode node{clock};
  std::function<void()> go_on;
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kInfo, log_lines);
  boost::asio::io_context io;
  nri::NriSource source{"/none",
                        [](int, nri::Origin) { return base::Result<nri::Process>(); },
                        {io, node, node, *this, log, clock}};
};

}  // namespace

TEST_CASE("before the response other sources catch up and threads are narrowed, within budget") {
  Scene scene;
  scene.source.before({pod("s1"), container("s1", "c1")});
  CHECK(scene.node.drain() ==
        Lines{"catch up within 50 ms", "narrow within 50 ms: pod s1, container s1/c1"});
}

TEST_CASE("a container is adjusted after its sandbox was narrowed") {
  Scene scene;
  const auto adjustment = scene.source.creating({container("s1", "c1")}, {"s1", "c1", {}});
  CHECK(adjustment->mounts.size() == 1);
  CHECK(scene.node.drain() ==
        Lines{"catch up within 50 ms", "narrow within 50 ms: container s1/c1", "adjust c1"});
}

TEST_CASE("a start waits for the guest, and continues with it") {
  Scene scene;
  bool started = false;
  scene.source.starting({container("s1", "c1")}, {{.sandbox = "s1", .id = "c1"}, {}, {}},
                        [&] { started = true; });
  CHECK(scene.node.drain().back() == "await s1/c1");
  CHECK_FALSE(started);
  scene.go_on();
  CHECK(started);
}

TEST_CASE("after the response there is no deadline, and the sandbox is finished") {
  Scene scene;
  scene.source.after({container("s1", "c1")}, "s1");
  CHECK(scene.node.drain() == Lines{"narrow within no deadline: container s1/c1", "finish s1"});
}

TEST_CASE("pods unknown to the runtime are removed, unless other sources reported them") {
  Scene scene;
  for (const char* id : {"gone", "stays"}) {
    scene.node.known.apply(pod(id));
    scene.node.known.apply(container(id, std::string(id) + "-c1"));
  }
  scene.node.known.apply(container("stays", "stays-c2"));
  scene.node.known.apply({Source::kPersist, policy::ledger::PodSeen{.id = "kata's"}});
  scene.source.synchronized({pod("stays"), container("stays", "stays-c1")});
  CHECK(scene.node.drain() == Lines{"catch up within no deadline",
                                    "handle: pod stays, container stays/stays-c1, pod gone gone, "
                                    "container gone stays/stays-c2",
                                    "synced nri", "finish ", "forget gone"});
  CHECK(scene.node.notices == std::vector{Notice::kRuntimeReported});
}

TEST_CASE("that a VMM has ended is forgotten with its pod, when the runtime no longer has that") {
  Scene scene;
  for (const char* id : {"gone", "stays"}) {
    scene.node.known.ended().record(id, {100, 1}, Source::kNri);
  }
  scene.node.known.ended().record("kata's", {200, 1}, Source::kPersist);
  scene.source.synchronized({pod("stays")});
  CHECK(scene.node.drain() == Lines{"catch up within no deadline",
                                    "handle: pod stays, pod gone gone", "synced nri", "finish ",
                                    "forget gone"});
}

TEST_CASE("the runtime's connection is the source's status, and reported to other sources") {
  Scene scene;
  CHECK(scene.node.statuses[Source::kNri] == source::Status{false, "not connected yet"});
  scene.source.connected("containerd 2.3", true);
  CHECK(scene.node.statuses[Source::kNri] == source::Status{true, "containerd 2.3"});
  scene.source.disconnected("it left");
  CHECK(scene.node.statuses[Source::kNri] == source::Status{false, "it left; retrying"});
  CHECK(scene.node.notices == std::vector{Notice::kRuntimeConnected, Notice::kRuntimeDisconnected});
}

TEST_CASE("pods that cannot be seen are in the source's status, with any connection") {
  Scene scene;
  scene.source.connected("containerd 2.3", true);
  scene.source.unseen({{"g", "no memory"}, {"h", "no memory"}});
  const source::Status& status = scene.node.statuses[Source::kNri];
  CHECK(status.up);
  CHECK(status.text == "containerd 2.3; cannot see whether pod g has a VM: no memory (and 1 more)");
  CHECK(status.unseen.size() == 2);
  scene.source.disconnected("it left");
  CHECK(status.unseen.size() == 2);
  scene.source.unseen({});
  CHECK(status == source::Status{false, "it left; retrying"});
}

TEST_CASE("a node whose runtime has no NRI misses nothing, unless it had NRI before") {
  Scene scene;
  scene.source.disconnected("no such file");
  CHECK(scene.node.statuses[Source::kNri].absent);
  scene.source.connected("containerd 2.3", true);
  scene.source.disconnected("no such file");
  CHECK_FALSE(scene.node.statuses[Source::kNri].absent);
}

TEST_CASE("each late response is logged and counted") {
  Scene scene;
  scene.source.answered("StartContainer", 50ms);
  CHECK(scene.log_lines.empty());
  scene.source.answered("StartContainer", 51ms);
  CHECK(scene.log_lines.find("exceeded its budget call=StartContainer milliseconds=51 budget=50") !=
        std::string::npos);
  CHECK(scene.node.answers == std::vector<std::chrono::nanoseconds>{50ms, 51ms});
}

namespace {

/// Gives each container CPU 7, or refuses it.
struct Giver final : nri::Allocator {
  explicit Giver(tests::RecordingNode& with) : node(with) {}

  base::Result<void> create(const nri::Described& container) override {
    if (refuses) return base::fail(base::ErrorCode::kConflict, "no room");
    node.add("allocate " + container.candidate.id);
    changed = {{"c0", {0, 1}, {}}, {container.candidate.id, {7}, {}}};
    return {};
  }
  base::Result<void> resize(const std::string& container, std::int64_t quota,
                            std::int64_t) override {
    if (refuses) return base::fail(base::ErrorCode::kConflict, "no room");
    node.add("resize " + container + ' ' + std::to_string(quota));
    return {};
  }
  void end(const std::string& container) override { node.add("end " + container); }
  void synchronize(const std::vector<nri::Described>&, const std::set<std::string>&) override {
    node.add("synchronize");
  }
  bool adopt(const nri::Described& container) override { return container.candidate.id == "new"; }
  void forget(const std::vector<Event>&) override { node.add("forget"); }
  nri::Updates updates() override { return std::exchange(changed, {}); }
  void complete(std::vector<Event>& events) override {
    events.insert(events.begin(), {Source::kManaged, policy::ledger::KubeletSeen{}});
  }
  void set_updater(nri::Updater* updater) override {
    node.add(updater == nullptr ? "no updater" : "updater");
  }
  void apply() override { node.add("apply"); }
  void apply_at_once() override { node.add("apply at once"); }

  tests::RecordingNode& node;
  nri::Updates changed;
  bool refuses = false;
};

}  // namespace

TEST_CASE("where we give containers their CPUs, that is decided before anything is narrowed") {
  Scene scene;
  Giver giver(scene.node);
  nri::NriSource source("/none", [](int, nri::Origin) { return base::Result<nri::Process>(); },
                        {scene.io, scene.node, scene.node, scene, scene.log, scene.clock, &giver});
  nri::CreateRequest request{"s1", "c1", {}, {}};
  request.described.candidate.id = "c1";
  const auto adjustment = source.creating({pod("s1"), container("s1", "c1")}, request);
  REQUIRE(adjustment);
  CHECK(adjustment->sets == nri::ContainerSets{"c1", {7}, {}});
  CHECK(adjustment->updates == nri::Updates{{"c0", {0, 1}, {}}});
  CHECK(scene.node.drain() == Lines{"allocate c1", "catch up within 50 ms",
                                    "narrow within 50 ms: kubelet, pod s1, container s1/c1",
                                    "adjust c1"});
  CHECK(source.stopped("c1").empty());
  CHECK(scene.node.drain() == Lines{"end c1"});

  giver.refuses = true;
  CHECK(source.creating({pod("s1"), container("s1", "c2")}, request).error().message == "no room");
  CHECK(scene.node.drain() ==
        Lines{"catch up within 50 ms", "narrow within 50 ms: kubelet, pod s1"});
  CHECK_FALSE(source.updating({container("s1", "c1")}, {.sandbox = "s1", .id = "c1"}));
}

TEST_CASE("a container whose creation was not reported has its CPUs before it starts") {
  Scene scene;
  Giver giver(scene.node);
  nri::NriSource source("/none", [](int, nri::Origin) { return base::Result<nri::Process>(); },
                        {scene.io, scene.node, scene.node, scene, scene.log, scene.clock, &giver});
  source.starting({container("s1", "new")}, {{.sandbox = "s1", .id = "new"}, {}, {}}, [] {});
  CHECK(scene.node.drain() == Lines{"catch up within 50 ms",
                                    "narrow within 50 ms: kubelet, container s1/new",
                                    "apply at once", "await s1/new"});
  source.starting({container("s1", "c1")}, {{.sandbox = "s1", .id = "c1"}, {}, {}}, [] {});
  CHECK(scene.node.drain().back() == "await s1/c1");
}

TEST_CASE("who gives containers their CPUs may ask the runtime, while it is there and can be") {
  Scene scene;
  Giver giver(scene.node);
  nri::NriSource source("/none", [](int, nri::Origin) { return base::Result<nri::Process>(); },
                        {scene.io, scene.node, scene.node, scene, scene.log, scene.clock, &giver});
  source.connected("containerd 2.3", false);
  source.connected("containerd 2.4", true);
  source.disconnected("it left");
  CHECK(scene.node.drain() == Lines{"no updater", "updater", "no updater"});
}
