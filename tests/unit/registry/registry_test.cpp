// SPDX-License-Identifier: Apache-2.0
// The registry by itself: what it notifies of when, and what it forgets.
#include "affinity/registry/registry.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace policy::ledger;
using board::NotificationKind;
using policy::CpuSet;

namespace {

struct Scene {
  /// A container that names the claims of these uids, all on CPUs 2-3.
  void name_claims(const std::string& pod, const std::string& container,
                   const std::vector<std::string>& uids) {
    ContainerSeen seen{.sandbox = pod, .id = container, .spec = {}};
    seen.claims.emplace();
    for (const std::string& uid : uids) seen.claims->push_back({uid, CpuSet{2, 3}});
    registry.fold({Source::kNri, seen});
  }
  void own(const std::string& pod, CpuSet cpus, const std::string& container = "c") {
    policy::ContainerFacts facts;
    facts.id = container;
    facts.cpus = std::move(cpus);
    registry.fold({Source::kApi, whole_report(pod, facts, true)});
  }
  void kubelet(CpuSet pool) {
    registry.fold({Source::kKubelet, KubeletSeen{std::move(pool), std::vector<Claim>{}}});
  }
  long count(NotificationKind kind) const { return std::ranges::count(kinds, kind); }

  tests::TempDir dir;
  tests::TestClock clock;
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kWarning, log_lines);
  board::Board board{clock};
  std::vector<NotificationKind> kinds;
  std::string last_text, texts;
  board::Subscription all = board.feed().subscribe([this](const board::Notification& notification) {
    kinds.push_back(notification.kind);
    last_text = notification.text;
    texts += last_text + '\n';
  });
  state::Store store{dir.path(), "boot", log};
  registry::Registry registry{store, board, log, clock};
};

}  // namespace

TEST_CASE("what PodResources said is current until kubelet's state or the driver's changes") {
  Scene scene;
  CHECK_FALSE(scene.registry.has_current_resources());
  scene.kubelet(CpuSet::range(0, 7));
  scene.registry.source_synced(Source::kKubelet);
  CHECK_FALSE(scene.registry.has_current_resources());
  scene.registry.source_synced(Source::kPodResources);
  CHECK(scene.registry.has_current_resources());

  scene.kubelet(CpuSet::range(0, 7));  // nothing new
  CHECK(scene.registry.has_current_resources());
  scene.own("other", {1});
  CHECK(scene.registry.has_current_resources());
  SECTION("kubelet's") { scene.kubelet(CpuSet::range(0, 5)); }
  SECTION("the driver's") {
    scene.registry.fold({Source::kDra, PreparedSeen{{{"u1", CpuSet{6, 7}}}}});
  }
  CHECK_FALSE(scene.registry.has_current_resources());
}

TEST_CASE("an event that does not name the VMM again does not read as if there were none") {
  Scene scene;
  policy::ledger::PodSeen seen;
  seen.id = "s1";
  seen.vmm = policy::ProcessId{7, 1};
  scene.registry.fold({Source::kApi, seen});
  CHECK(scene.last_text == "VMM is process 7 (api)");

  policy::ledger::PodSeen more;
  more.id = "s1";
  more.handler = "kata";
  scene.registry.fold({Source::kApi, more});
  CHECK(scene.last_text == "VMM is process 7 (api)");
  more.id = "s2";
  scene.registry.fold({Source::kApi, more});
  CHECK(scene.last_text == "no VM (api)");
}

TEST_CASE("a refused claim is notified once, and again only after it was gone") {
  Scene scene;
  scene.name_claims("s1", "c1", {"u1"});
  CHECK(scene.count(NotificationKind::kClaimRefused) == 1);
  scene.name_claims("s2", "c1", {"u2"});
  CHECK(scene.count(NotificationKind::kClaimRefused) == 2);
  scene.name_claims("s1", "c2", {});
  scene.kubelet(CpuSet::range(0, 7));
  CHECK(scene.count(NotificationKind::kClaimRefused) == 2);
  CHECK(scene.registry.refused().size() == 2);

  scene.name_claims("s1", "c1", {});
  REQUIRE(scene.registry.refused().size() == 1);
  CHECK(scene.registry.refused()[0].sandbox == "s2");
  scene.name_claims("s1", "c1", {"u1"});
  CHECK(scene.count(NotificationKind::kClaimRefused) == 3);
}

TEST_CASE("with its pod a refused claim is gone, however it ends") {
  Scene scene;
  scene.name_claims("s1", "c1", {"u1"});
  scene.name_claims("s2", "c1", {"u2"});
  scene.registry.end("s1");
  CHECK(scene.registry.refused().size() == 1);
  scene.registry.fold({Source::kNri, PodGone{"s2"}});
  CHECK(scene.registry.refused().empty());
}

TEST_CASE("a contest is notified when it begins, when another joins, and when it ends") {
  Scene scene;
  scene.own("s1", {2, 3});
  CHECK(scene.count(NotificationKind::kCpusContested) == 0);
  scene.own("s2", {3, 4});
  CHECK(scene.count(NotificationKind::kCpusContested) == 1);
  scene.own("s2", {3, 4});
  scene.own("s4", {6});
  CHECK(scene.count(NotificationKind::kCpusContested) == 1);
  scene.own("s3", {3});
  CHECK(scene.count(NotificationKind::kCpusContested) == 2);

  scene.registry.fold({Source::kApi, PodGone{"s3"}});
  CHECK(scene.count(NotificationKind::kCpusUncontested) == 0);
  CHECK(cpus_of(scene.registry.contests()) == CpuSet{3});
  scene.registry.end("s2");
  CHECK(scene.count(NotificationKind::kCpusUncontested) == 1);
  CHECK(scene.registry.contests().empty());
}

TEST_CASE("a contest within a pod ends with one of its containers") {
  Scene scene;
  scene.own("s1", {4}, "c");
  scene.own("s1", {4}, "d");
  CHECK(scene.count(NotificationKind::kCpusContested) == 1);
  scene.registry.fold({Source::kApi, ContainerGone{"s1", "d"}});
  CHECK(scene.count(NotificationKind::kCpusUncontested) == 1);
  CHECK(scene.registry.contests().empty());
}

TEST_CASE("an event counts for its source, also when it is rejected, and changes nothing then") {
  Scene scene;
  scene.own("s1", {2});
  scene.registry.fold({Source::kNri, PodGone{"unknown"}});
  const auto rejected = scene.registry.fold({Source::kNri, PodSeen{.id = "../s1"}});
  CHECK_FALSE(rejected.any);
  CHECK(scene.board.counters().events == board::CountsByLabel{{"api", 1}, {"nri", 2}});
  CHECK(scene.registry.ledger().pods().size() == 1);
  CHECK(scene.log_lines.find("event rejected source=nri") != std::string::npos);
}

TEST_CASE("a pod that claims another's VM is recorded without it") {
  Scene scene;
  scene.registry.fold({Source::kNri, PodSeen{.id = "s1", .vmm = policy::ProcessId{100, 5}}});
  scene.registry.fold({Source::kNri, PodSeen{.id = "s2", .vmm = policy::ProcessId{100, 5}}});
  CHECK(scene.count(NotificationKind::kVmmRefused) == 1);
  REQUIRE(scene.registry.find("s2") != nullptr);
  CHECK_FALSE(scene.registry.find("s2")->vmm);
  CHECK(scene.registry.find("s1")->vmm == policy::ProcessId{100, 5});
  scene.registry.end("s1");
  scene.registry.fold({Source::kNri, PodSeen{.id = "s2", .vmm = policy::ProcessId{100, 5}}});
  CHECK(scene.registry.find("s2")->vmm == policy::ProcessId{100, 5});
}

TEST_CASE("state of before a restart does not replace a VM that a source has reported since") {
  Scene scene;
  state::Saved saved;
  saved.pod.id = "s1";
  saved.pod.vmm = policy::ProcessId{100, 5};
  saved.guest.writes.address = "vsock:3";
  SECTION("another one") {
    scene.registry.fold({Source::kNri, PodSeen{.id = "s1", .vmm = policy::ProcessId{200, 9}}});
    CHECK_FALSE(scene.registry.restore(saved));
    CHECK(scene.registry.find("s1")->vmm == policy::ProcessId{200, 9});
  }
  SECTION("the same") {
    scene.registry.fold({Source::kNri, PodSeen{.id = "s1", .vmm = saved.pod.vmm}});
    CHECK(scene.registry.restore(saved));
  }
  SECTION("none") {
    CHECK(scene.registry.restore(saved));
    CHECK(scene.registry.find("s1")->vmm == saved.pod.vmm);
    REQUIRE(scene.board.guest("s1") != nullptr);
    CHECK(scene.board.guest("s1")->writes.address == "vsock:3");
  }
}

TEST_CASE("of two state files with one VM the first has it, and the other pod keeps its CPUs") {
  Scene scene;
  state::Saved holder;
  holder.pod.id = "s1";
  holder.pod.vmm = policy::ProcessId{100, 5};
  state::Saved other = holder;
  other.pod.id = "s2";
  auto& container = other.pod.containers["c"];
  container.facts = {"c", "", {3}, {}, true};
  container.stated_exclusive = true;
  SECTION("both were known before") { CHECK(scene.registry.restore(holder)); }
  SECTION("a source has reported one meanwhile") {
    scene.registry.fold({Source::kNri, PodSeen{.id = "s1", .vmm = holder.pod.vmm}});
  }
  CHECK_FALSE(scene.registry.restore(other));
  CHECK(scene.registry.find("s1")->vmm == holder.pod.vmm);
  REQUIRE(scene.registry.find("s2") != nullptr);
  CHECK_FALSE(scene.registry.find("s2")->vmm);
  CHECK(scene.registry.ledger().exclusive() == CpuSet{3});
  CHECK(scene.count(NotificationKind::kVmmRefused) == 1);
  CHECK(scene.log_lines.find("two pods claim one VM sandbox=s2") != std::string::npos);
}

TEST_CASE(
    "a VM that only a state file gives a pod is that of the pod for which a source reports it") {
  Scene scene;
  const policy::ProcessId vmm{100, 5};
  state::Saved saved;
  saved.pod.id = "s1";
  saved.pod.vmm = vmm;
  saved.pod.cgroup = "pods/s1";
  saved.pod.agent = saved.guest.writes.address = "vsock:3";
  saved.pod.containers["c"].facts = {"c", "", {3}, {}, true};
  saved.pod.containers["c"].stated_exclusive = true;
  REQUIRE(scene.registry.restore(saved));
  const auto report = [&](const std::string& pod) {
    return scene.registry.fold({Source::kNri, PodSeen{.id = pod, .vmm = vmm}});
  };
  SECTION("another pod") {
    CHECK(report("s2").former_pod == "s1");
    CHECK(scene.registry.find("s2")->vmm == vmm);
    const PodRecord& former = *scene.registry.find("s1");
    CHECK_FALSE(former.vmm);
    CHECK(former.cgroup.empty());
    CHECK(former.agent.empty());
    CHECK(scene.registry.ledger().exclusive() == CpuSet{3});
    CHECK(scene.log_lines.find("two pods claim one VM sandbox=s1") != std::string::npos);
    REQUIRE(scene.board.guest("s2") != nullptr);
    CHECK(scene.board.guest("s2")->writes.address == "vsock:3");
    CHECK(scene.board.guest("s1") == nullptr);
    report("s2");
    CHECK(scene.count(NotificationKind::kVmmRefused) == 1);
    report("s1");  // now two sources disagree
    CHECK(scene.registry.find("s2")->vmm == vmm);
    CHECK_FALSE(scene.registry.find("s1")->vmm);
  }
  SECTION("the same pod") {
    report("s1");
    CHECK(report("s2").former_pod.empty());
    CHECK(scene.registry.find("s1")->vmm == vmm);
    CHECK_FALSE(scene.registry.find("s2")->vmm);
  }
}

TEST_CASE("state that becomes readable late completes what was reported of its pod meanwhile") {
  Scene scene;
  state::Saved saved;
  saved.pod.id = "s1";
  saved.pod.pod_name = "default/before";
  saved.pod.agent = "vsock://3:1024";
  saved.pod.vmm = policy::ProcessId{100, 5};
  saved.pod.source = Source::kApi;
  for (const auto& [id, source] :
       {std::pair("by-api", Source::kApi), std::pair("both", Source::kApi),
        std::pair("ended", Source::kNri)}) {
    auto& container = saved.pod.containers[id];
    container.source = source;
    container.facts.id = id;
    container.facts.cpus = {2};
  }
  scene.board.set_source(Source::kNri, {true, "", {}});
  scene.registry.fold({Source::kApi, PodSeen{.id = "s1", .pod_name = "default/now"}});
  policy::ContainerFacts facts;
  facts.id = "both";
  facts.cpus = {3};
  scene.registry.fold({Source::kApi, policy::ledger::whole_report("s1", facts)});
  CHECK(scene.registry.restore(saved));
  const PodRecord& known = *scene.registry.find("s1");
  CHECK(known.vmm == saved.pod.vmm);
  CHECK(known.agent == "vsock://3:1024");
  CHECK(known.pod_name == "default/now");
  REQUIRE(known.containers.size() == 2);
  CHECK(known.containers.at("by-api").facts.cpus == policy::CpuSet{2});
  CHECK(known.containers.at("both").facts.cpus == policy::CpuSet{3});
}

TEST_CASE("a pin that was set since the start counts more than the state of before") {
  Scene scene;
  const auto pin = [](policy::CpuSet cpus) {
    policy::ledger::Pin one;
    one.role = policy::Role::kEmulator;
    one.cpus = std::move(cpus);
    return one;
  };
  state::Saved saved;
  saved.pod.id = "s1";
  saved.pod.vmm = policy::ProcessId{100, 5};
  saved.pod.overrides = {pin({1})};
  scene.registry.fold({Source::kNri, PodSeen{.id = "s1", .vmm = saved.pod.vmm}});
  scene.registry.fold({Source::kApi, policy::ledger::OverrideSet{
                                         .sandbox = "s1", .value = pin({2}), .lasts_for = {}}});
  CHECK(scene.registry.restore(saved));
  REQUIRE(scene.registry.find("s1")->overrides.size() == 1);
  CHECK(scene.registry.find("s1")->overrides.front().cpus == policy::CpuSet{2});
}

TEST_CASE("the number of a VMM that ended is no VM of its pod, after a restart too") {
  const auto source = GENERATE(Source::kNri, Source::kPersist, Source::kProxy);
  const bool is_restarted = GENERATE(false, true);
  const auto report = [source](registry::Registry& registry, policy::ProcessId vmm) {
    registry.fold({source, PodSeen{.id = "s1", .vmm = vmm}});
    return registry.find("s1")->vmm.has_value();
  };
  Scene scene;
  REQUIRE(report(scene.registry, {100, 5}));
  scene.registry.end("s1");
  state::Store store{scene.dir.path(), "boot", scene.log};
  registry::Registry restarted{store, scene.board, scene.log, scene.clock};
  restarted.load([&](const state::Saved& saved) { CHECK(restarted.restore_ended(saved)); });
  registry::Registry& registry = is_restarted ? restarted : scene.registry;
  CHECK(registry.find("s1") == nullptr);
  CHECK_FALSE(report(registry, {100, 6}));
  CHECK(scene.log_lines.find("process 100 is not the VM of sandbox") != std::string::npos);
  CHECK(scene.count(NotificationKind::kVmmRefused) == 1);
  CHECK(report(registry, {101, 6}));
  registry.fold({source, PodGone{"s1"}});
  CHECK(report(registry, {100, 6}));
  CHECK_FALSE(std::filesystem::exists(scene.dir.path() / "s1.json"));
}

TEST_CASE("what was refused of a pod is forgotten when its own VMM has ended") {
  Scene scene;
  const auto report = [&scene](const std::string& pod, policy::ProcessId vmm) {
    scene.registry.fold({Source::kApi, PodSeen{.id = pod, .vmm = vmm}});
  };
  report("s1", {100, 5});
  report("s2", {200, 5});
  report("s1", {200, 5});
  REQUIRE(scene.registry.refused_vmms().contains("s1"));
  scene.registry.end("s1");
  CHECK(scene.registry.refused_vmms().empty());
  scene.registry.fold({Source::kApi, PodGone{"s2"}});
  CHECK(scene.registry.remove_due_claims().empty());
}

TEST_CASE("a source that proves which process is the VMM names any number") {
  const auto source = GENERATE(Source::kApi, Source::kCgroup, Source::kLibvirt);
  Scene scene;
  scene.registry.fold({Source::kNri, PodSeen{.id = "s1", .vmm = policy::ProcessId{100, 5}}});
  scene.registry.end("s1");
  scene.registry.fold({source, PodSeen{.id = "s1", .vmm = policy::ProcessId{100, 6}}});
  CHECK(scene.registry.find("s1")->vmm.has_value());
}

TEST_CASE("VMMs that have ended are remembered up to a limit, the last ones") {
  Scene scene;
  const auto end = [&](std::size_t number) {
    const std::string id = "s" + std::to_string(number);
    scene.registry.fold({Source::kNri, PodSeen{.id = id, .vmm = policy::ProcessId{100, 5}}});
    scene.registry.end(id);
  };
  for (std::size_t i = 0; i < EndedVmms::kMost; ++i) end(i);
  CHECK(std::filesystem::exists(scene.dir.path() / "s0.json"));
  end(EndedVmms::kMost);
  CHECK_FALSE(std::filesystem::exists(scene.dir.path() / "s0.json"));
  CHECK(std::filesystem::exists(scene.dir.path() / "s1.json"));
  CHECK(scene.registry.ledger().ended().all().size() == EndedVmms::kMost);
}

TEST_CASE("the state of a pod that ended is removed from the disk") {
  Scene scene;
  scene.registry.describe_with([&](const std::string& pod) -> std::optional<state::Saved> {
    const PodRecord* known = scene.registry.find(pod);
    if (known == nullptr) return std::nullopt;
    state::Saved saved;
    saved.pod = *known;
    return saved;
  });
  scene.registry.fold({Source::kApi, PodSeen{.id = "s1", .vmm = policy::ProcessId{100, 5}}});
  scene.registry.save("s1");
  CHECK(std::filesystem::exists(scene.dir.path() / "s1.json"));
  scene.registry.end("s1");
  CHECK_FALSE(std::filesystem::exists(scene.dir.path() / "s1.json"));
}

TEST_CASE("state that cannot be removed is not reported as missing") {
  Scene scene;
  scene.registry.fold({Source::kApi, PodSeen{.id = "s1", .vmm = policy::ProcessId{100, 5}}});
  const auto file = scene.dir.path() / "s1.json";
  std::filesystem::create_directories(file / "not-empty");
  scene.registry.end("s1");
  REQUIRE(scene.registry.unsaved().contains("s1"));
  CHECK(scene.registry.unsaved().at("s1").is_removed);
  CHECK(scene.texts.find("still on disk") != std::string::npos);
  CHECK(scene.texts.find("state not on disk") == std::string::npos);
  std::filesystem::remove(file / "not-empty");
  scene.registry.retry([](const state::Saved&) {});
  CHECK(scene.registry.unsaved().empty());
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("state of a daemon before this one that is not on disk any more is missing, too") {
  Scene scene;
  const auto directory = scene.dir.path() / "state";
  std::filesystem::create_directory(directory);
  state::Saved saved;
  saved.pod.id = "s1";
  saved.pod.source = Source::kNri;
  REQUIRE(state::Store(directory, "boot", scene.log).save(saved));
  state::Store store(directory, "boot", scene.log);
  registry::Registry registry(store, scene.board, scene.log, scene.clock);
  registry.describe_with([&](const std::string&) { return std::optional(saved); });
  const auto restore = [&](const state::Saved& one) { CHECK(registry.restore(one)); };
  registry.load(restore);
  REQUIRE(registry.unsaved().empty());

  std::filesystem::remove_all(directory);
  std::ofstream(directory) << "not a directory";
  for (int i = 0; i < 2; ++i) registry.retry(restore);
  REQUIRE(registry.unsaved().contains("s1"));
  CHECK_FALSE(registry.unsaved().at("s1").is_removed);
  CHECK(scene.count(NotificationKind::kStateUnsaved) == 1);
  std::filesystem::remove(directory);
  registry.retry(restore);
  CHECK(registry.unsaved().empty());
  CHECK(std::filesystem::is_regular_file(directory / "s1.json"));
}

TEST_CASE("an open gate is consumed once, and dismissed lost state does not open it") {
  Scene scene;
  scene.registry.expect(Source::kNri);
  scene.registry.load([](const state::Saved&) {});
  CHECK_FALSE(scene.registry.gate().may_widen());
  CHECK_FALSE(scene.registry.has_opened());
  scene.registry.source_synced(Source::kNri);
  CHECK(scene.count(NotificationKind::kStartComplete) == 1);
  CHECK(scene.registry.has_opened());
  CHECK(scene.registry.consume_opened());
  CHECK_FALSE(scene.registry.consume_opened());
  CHECK_FALSE(scene.registry.stop_waiting());
  CHECK(scene.count(NotificationKind::kStartLate) == 0);
}
