// SPDX-License-Identifier: Apache-2.0
// RDT classes on a node of files: what kata-affinity-helper's own code is asked for over its
// socket, makes of it on a resctrl, and what the node shows then.
#include "affinity/rdt/rdt.hpp"

#include <algorithm>
#include <optional>

#include "affinity/helper/rdt_service.hpp"
#include "affinity/line/rdt.hpp"
#include "tests/catch.hpp"
#include "tests/fake_resctrl.hpp"
#include "tests/run_loop.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/line/scene.hpp"
#include "tests/unit/quiet/helper.hpp"

using namespace ka;
using namespace std::chrono_literals;
using policy::ClassKind;

namespace {

constexpr const char* kRdt = "rdtclass.resource-policy.nri.io";
constexpr const char* kGold = "kata-affinity.gold";

policy::plan::ResourceClass gold(const char* l3 = "50%") {
  policy::plan::ResourceClass given;
  given.rdt.l3 = policy::parse_cache_share(l3);
  return given;
}

line::Options with_classes() {
  line::Options options = tests::at_home();
  options.classes = {.by_name = {{"gold", gold()}}, .by_annotation = {ClassKind::kRdt}};
  return options;
}

/// A VM of three vCPUs, whose container owns CPUs 2-3: vCPUs 1 and 2, threads 111 and 112.
struct Node : tests::LineScene {
  explicit Node(line::Options options = with_classes(),
                const policy::Annotations& annotations = {{kRdt, "gold"}})
      : LineScene(8, std::move(options)) {
    boot_pod("s1", 100, 3);
    for (const int tid : {110, 111, 112, 113}) resctrl.start(tid);
    listen();
    start_helper();
    follow();
    request(annotations);
    own("app", {2, 3});
  }

  void listen() {
    socket.emplace(io, clock, temp.path() / "helper.sock");
    socket->answer = [this](const http::Request& one) {
      return helper::respond({{helper::kRdtPath, helper::rdt_verb(*keeper)}}, one);
    };
  }
  void hang_up() {
    socket.reset();
    std::filesystem::remove(temp.path() / "helper.sock");
  }
  /// A helper that was killed, and is started again.
  void start_helper() {
    keeper.emplace(resctrl, helper::VmmThreads(node.proc()),
                   helper::RecordFile<helper::RdtRecords>(record.parent_path(), "boot"), logger);
    keeper->adopt();
  }
  /// As a daemon does at its start.
  void follow() {
    rdt.emplace(io, clock, line().node(),
                rdt::Rdt::Places{temp.path() / "helper.sock", temp.path()});
    rdt->start();
    line().adopt();
    line().stop_waiting();
    run_loop();
  }
  void run_loop() { tests::run_ready(io); }
  void request(const policy::Annotations& annotations) {
    policy::ledger::PodSeen pod{.id = "s1"};
    pod.vmm = policy::ProcessId{100, 0};
    pod.annotations = annotations;
    REQUIRE(requests().submit({policy::ledger::Source::kApi, pod}));
    run_loop();
  }
  void own(const std::string& name, const policy::CpuSet& cpus) {
    REQUIRE(container("s1", name, cpus, true));
    run_loop();
  }
  void check_drift() {
    rdt->refresh();
    run_loop();
  }
  std::string where() const {
    return resctrl.where(110) + ' ' + resctrl.where(111) + ' ' + resctrl.where(112);
  }
  /// Why the container does not have its class; empty: it has.
  std::string problem() {
    const auto view = line().node().view("s1");
    REQUIRE(view->classes.requests.size() == 1);
    CHECK_FALSE(view->classes.requests[0].refusal);
    return line::rdt_problem(*view, view->classes.requests[0]);
  }
  int unset() { return line::count_without_rdt(*line().node().view("s1")); }
  std::size_t requested() const { return socket->requests.size(); }

  tests::TempDir temp;
  tests::FakeResctrl resctrl;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);
  boost::asio::io_context io;
  std::filesystem::path record = [this] {
    temp.write("kata-affinity/helper/lock", "");
    return temp.path() / "kata-affinity/helper/resctrl.json";
  }();
  std::optional<tests::FakeHelper> socket;
  std::optional<helper::RdtKeeper> keeper;
  std::optional<rdt::Rdt> rdt;
};

}  // namespace

TEST_CASE("the vCPUs of a container are in the group of its class") {
  Node node;
  CHECK(node.where() == "/ kata-affinity.gold kata-affinity.gold");
  CHECK(node.problem().empty());
  CHECK(node.unset() == 0);
  CHECK(node.verifier().verify().ok());
  REQUIRE(node.remove("s1"));
  node.run_loop();
  CHECK(node.where() == "/ / /");
  CHECK(node.resctrl.groups().empty());
  CHECK_FALSE(std::filesystem::exists(node.record));
}

TEST_CASE("a vCPU that is plugged later gets the class of the container that it serves") {
  Node node;
  node.plug(100, 3);
  node.own("app", {2, 3, 4});
  CHECK(node.resctrl.where(113) == kGold);
  CHECK(node.problem().empty());
}

TEST_CASE("a realtime pod that requests no class has that of the configuration") {
  line::Options options = with_classes();
  options.classes.by_annotation = {};
  options.quiet.realtime_rdtclass = "gold";
  Node quiet(options, {});
  CHECK(quiet.where() == "/ / /");
  options.settings.grade = policy::plan::Grade::kRealtime;
  Node node(options, {});
  CHECK(node.where() == "/ kata-affinity.gold kata-affinity.gold");
  CHECK(node.problem().empty());
  options.quiet.realtime_rdtclass = {};
  node.line().configure(options);
  node.run_loop();
  CHECK(node.where() == "/ / /");
}

TEST_CASE("release, observe and disable give all back, and reconcile requests it again") {
  Node node;
  node.line().release_all();
  node.run_loop();
  CHECK(node.where() == "/ / /");
  CHECK(node.problem() == "the sandbox is released");
  CHECK(node.unset() == 0);
  node.line().reconcile_all();
  node.run_loop();
  CHECK(node.resctrl.where(111) == kGold);
  line::Options options = with_classes();
  options.observe = true;
  node.line().configure(options);
  node.run_loop();
  CHECK(node.where() == "/ / /");
  CHECK(node.problem() == "mode is \"observe\", nothing is written");
}

TEST_CASE("a reload changes the shares, and a class that is gone ends") {
  Node node;
  line::Options options = with_classes();
  options.classes.by_name["gold"] = gold("0-1");
  node.line().configure(options);
  node.run_loop();
  CHECK(node.resctrl.schemata(kGold).find("L3:0=3;1=3") != std::string::npos);
  options.classes.by_name.erase("gold");
  node.line().configure(options);
  node.run_loop();
  CHECK(node.where() == "/ / /");
}

TEST_CASE("where no thread has a class the helper is not contacted") {
  Node node;
  REQUIRE(node.remove("s1"));
  node.run_loop();
  node.socket->requests.clear();
  node.follow();
  node.check_drift();
  CHECK(node.requested() == 0);
}

TEST_CASE("what an earlier daemon requested is given back by one without classes") {
  Node node;
  node.line().configure(tests::at_home());
  node.rdt.reset();
  node.follow();
  CHECK(node.where() == "/ / /");
  CHECK_FALSE(std::filesystem::exists(node.record));
}

TEST_CASE("kill -9 of the helper: the next one holds it, and ends it when it is to end") {
  Node node;
  node.start_helper();
  node.resctrl.put(111, {});
  node.keeper->check();
  CHECK(node.resctrl.where(111) == kGold);
  node.start_helper();
  REQUIRE(node.remove("s1"));
  node.run_loop();
  CHECK(node.where() == "/ / /");
  CHECK(node.resctrl.groups().empty());
}

TEST_CASE("what another program moves is moved back after the check for drift") {
  Node node;
  node.resctrl.put(111, {});
  node.check_drift();
  CHECK(node.resctrl.where(111) == kGold);
}

TEST_CASE("without the helper nothing holds, which is warned of once, until it responds") {
  Node node;
  node.hang_up();
  node.check_drift();
  tests::run_for(node.io, node.clock, 60s, 1s);
  CHECK(node.problem().starts_with(
      "the helper (kata-affinity-helper) does not respond: cannot connect to "));
  CHECK(node.unset() == 2);
  CHECK(std::ranges::count(node.notified, "unmanaged") == 1);
  const auto findings = node.verifier().verify().findings;
  const auto unset = std::ranges::find(findings, "class-unset", &line::Finding::reason);
  REQUIRE(unset != findings.end());
  CHECK(unset->remedy == "systemctl enable --now kata-affinity-helper.socket");
  node.listen();
  tests::run_for(node.io, node.clock, 60s, 1s);
  CHECK(node.problem().empty());
}

TEST_CASE("absent hardware is one warning, and the reason of each container") {
  Node node;
  node.resctrl.unmount();
  node.check_drift();
  node.check_drift();
  CHECK(node.problem() == "resctrl is not mounted at /sys/fs/resctrl");
  CHECK(std::ranges::count(node.notified, "unmanaged") == 1);
  const auto report = node.verifier().verify();
  CHECK(std::ranges::count(report.findings, "classes", &line::Finding::invariant) == 2);
  CHECK(node.broken().empty());
}

TEST_CASE("a class that the machine cannot give is named") {
  Node node;
  line::Options options = with_classes();
  options.classes.by_name["gold"].rdt.mba = 50;
  node.resctrl.machine.linear = false;
  node.line().configure(options);
  node.run_loop();
  CHECK(node.problem() == "memory bandwidth is not counted in percent here");
  CHECK(std::ranges::count(node.notified, "unmanaged") == 1);
}

TEST_CASE("a helper of another version refuses, and says so") {
  Node node;
  node.socket->answer = [](const http::Request&) { return http::error_response(400, "no"); };
  node.check_drift();
  CHECK(node.problem() == "the helper (kata-affinity-helper) refuses it: no");
}

TEST_CASE("responses are read strictly, and made printable") {
  const std::string good =
      R"({"groups":[{"class":"gold","schemata":"L3:0=f\n","problem":"a\u001bb",)"
      R"("tasks":[{"tid":7,"problem":"c"}]}],"problem":""})";
  const auto state = rdt::Verb::read(good);
  REQUIRE(state);
  CHECK(state->groups.at("gold").problem == "a\\x1bb");
  CHECK(state->groups.at("gold").threads == std::map<int, std::string>{{7, "c"}});
  for (const char* text :
       {"", "[]", "{}", R"({"groups":[],"problem":1})", R"({"groups":[{}],"problem":""})",
        R"({"groups":1,"problem":""})", R"({"groups":[],"problem":"","x":1})"}) {
    CAPTURE(text);
    CHECK_FALSE(rdt::Verb::read(text));
  }
}
