// SPDX-License-Identifier: Apache-2.0
// grade = "quiet" on a node of files: what kata-affinity-helper is asked for, and which sandboxes
// count as quiet then.
#include "tests/unit/quiet/scene.hpp"

using namespace ka;
using namespace std::chrono_literals;
using policy::CpuSet;
using Node = tests::QuietScene;
using Sets = std::vector<std::string>;
using tests::kRecord;
using tests::quiet_options;

TEST_CASE("the CPUs of dedicated vCPUs are asked for, and given back when the pod is gone") {
  Node node;
  CHECK(node.grade("a") == "none of its vCPUs has a CPU of its own");
  node.own("a", {2, 3});
  node.own("b", {4});
  CHECK(node.grade("a") == "quiet");
  CHECK(node.count("quiet") == 2);
  REQUIRE(node.remove("a"));
  node.run_loop();
  REQUIRE(node.remove("b"));
  node.run_loop();
  CHECK(node.helper->requested() == Sets{"", "2-3", "2-4", "4", ""});
  CHECK(node.count("not-quiet") == 0);
}

TEST_CASE("a sandbox whose VMM exits gives its CPUs back although kubelet still lists them") {
  Node node;
  node.own("a", {2, 3});
  node.line().vmm_ended("a", policy::ProcessId{100, 100100});
  node.run_loop();
  CHECK(node.helper->requested().back() == "");
}

TEST_CASE("release gives everything back, and reconcile takes it again") {
  Node node;
  node.own("a", {2, 3});
  node.line().release_all();
  node.run_loop();
  CHECK(node.helper->requested().back() == "");
  CHECK(node.grade("a") == "it is released");
  node.line().reconcile_all();
  node.run_loop();
  CHECK(node.helper->requested().back() == "2-3");
}

TEST_CASE("other settings ask for nothing, but give back what an earlier daemon asked for") {
  line::Options options = tests::at_home();
  const bool observes = GENERATE(false, true);
  if (observes) {
    options = quiet_options();
    options.observe = true;
  }
  Node node(options);
  node.own("a", {2, 3});
  CHECK(node.helper->requested() == Sets{""});
  CHECK(node.grade("a") == (observes ? "mode is \"observe\", nothing is written" : "best-effort"));
}

TEST_CASE("pods of some namespaces are quiet, whatever their handler's grade is") {
  line::Options options = tests::at_home();
  options.quiet.namespaces = {"trading"};
  Node node(options);
  node.name("a", "trading/engine");
  node.name("b", "trading-tools/engine");
  node.own("a", {2, 3});
  node.own("b", {4});
  CHECK(node.helper->requested() == Sets{"", "2-3"});
  CHECK(node.grade("a") == "quiet");
  CHECK(node.grade("b") == "best-effort");
  node.line().configure(tests::at_home());
  node.run_loop();
  CHECK(node.helper->requested().back() == "");
  CHECK(node.grade("a") == "best-effort");
}

TEST_CASE("nobody asks a helper that has changed nothing to change nothing") {
  Node node(tests::at_home());
  std::filesystem::remove(node.temp.path() / kRecord);
  node.helper->requests.clear();
  node.follow();
  node.own("a", {2, 3});
  node.check_drift();
  CHECK(node.helper->requested().empty());
}

TEST_CASE("a pod that ends while the helper is away leaves no request behind") {
  Node node;
  std::filesystem::remove(node.temp.path() / kRecord);
  node.hang_up();
  node.own("a", {2, 3});
  REQUIRE(node.remove("a"));
  node.check_drift();
  node.listen();
  node.clock.advance(1min);
  node.run_loop();
  CHECK(node.helper->requested().back() == "");
}

TEST_CASE("nothing is asked before the sources have spoken") {
  Node node;
  node.own("a", {2, 3});
  node.helper->requests.clear();
  node.start();
  node.quiet.emplace(node.io, node.clock, node.line().node(),
                     quiet::Quiet::Places{node.temp.path() / "helper.sock", node.temp.path()});
  node.quiet->start();
  node.line().expect(policy::ledger::Source::kNri);
  node.line().adopt();
  node.check_drift();
  CHECK(node.helper->requested() == Sets{});
  CHECK(node.grade("a") == "the helper (kata-affinity-helper) has not responded yet");
  node.line().stop_waiting();
  node.run_loop();
  CHECK(node.helper->requested() == Sets{"2-3"});
}

TEST_CASE("a sandbox that would take the floor stays best-effort, others do not") {
  line::Options options = quiet_options();
  options.quiet.floor = {2};
  Node node(options);
  node.own("a", {2, 3});
  node.own("b", {4});
  CHECK(node.helper->requested().back() == "4");
  CHECK(node.grade("a") == "the host would lose CPUs that it always keeps (quiet_floor)");
  CHECK(node.grade("b") == "quiet");
  CHECK(node.count("not-quiet") == 1);
}

TEST_CASE("CPUs that kubelet reserves outside the shared pool are of the floor") {
  Node node;
  policy::ledger::KubeletSeen kubelet;
  kubelet.shared_pool = policy::CpuSet{0, 1};
  kubelet.claims = {{"uid-b", "app", {4, 5}}};
  node.line().handle({policy::ledger::Source::kKubelet, kubelet});
  node.own("a", {6, 7});
  CHECK(node.grade("a") == "the host would lose CPUs that it always keeps (quiet_floor)");
  kubelet.claims.reset();
  node.line().handle({policy::ledger::Source::kKubelet, kubelet});
  node.run_loop();
  CHECK(node.helper->requested().back() == "6-7");
}

TEST_CASE("a VMM in one of the host's units is not driven off its own CPUs") {
  Node node;
  node.node.in_cgroup(100, "machine.slice/vm.scope", "0-7");
  node.own("a", {2, 3});
  CHECK(node.helper->requested() == Sets{""});
  CHECK(node.grade("a") == "it runs in machine.slice, which cannot leave its CPUs");
}

TEST_CASE("without the helper a sandbox is best-effort, warned of once, until it answers") {
  Node node;
  node.hang_up();
  node.own("a", {2, 3});
  tests::run_for(node.io, node.clock, 60s, 1s);
  node.check_drift();
  CHECK(node.grade("a").starts_with(
      "the helper (kata-affinity-helper) does not respond: cannot connect to "));
  CHECK(node.board().quiet().trouble != "");
  CHECK(node.count("not-quiet") == 1);
  node.listen();
  tests::run_for(node.io, node.clock, 60s, 1s);
  CHECK(node.grade("a") == "quiet");
  CHECK(node.board().quiet().trouble == "");
}

TEST_CASE("a helper that goes away leaves nothing known") {
  Node node;
  node.own("a", {2, 3});
  node.hang_up();
  node.check_drift();
  CHECK(node.grade("a").find("does not respond") != std::string::npos);
  CHECK_FALSE(node.board().quiet().state);
}

TEST_CASE("what is held is asked for again after each check for drift") {
  Node node;
  node.own("a", {2, 3});
  const std::string left = R"({"name":"user.slice","cpus":"3","why":"busy"})";
  node.helper->answer = [&](const auto&) -> http::Response {
    return {.body = tests::quiet_document("2-3", left)};
  };
  node.check_drift();
  CHECK(node.helper->requested() == Sets{"", "2-3", "2-3"});
  CHECK(node.grade("a") == "services of the host may still run on its CPUs: user.slice (busy)");
  CHECK(node.board().quiet().state->kinds[0].left_total == 1);
  node.helper->answer = [](const auto&) -> http::Response {
    return {.body = tests::quiet_document("", "", "its record cannot be read")};
  };
  node.check_drift();
  CHECK(node.grade("a").ends_with("can write nothing: its record cannot be read"));
}

TEST_CASE("of several that are refused together, the one that is meant is found") {
  Node node;
  node.helper->answer = [](const http::Request& request) {
    const bool has_four = request.body.find("2-4") != std::string::npos ||
                          request.body.find("\"4") != std::string::npos;
    return has_four ? http::error_response(400, "CPU 4 is not exclusive")
                    : tests::FakeHelper::grant(request);
  };
  REQUIRE(node.container("a", "app", {4}, true));
  REQUIRE(node.container("b", "app", {2, 3}, true));
  node.run_loop();
  CHECK(node.helper->requested() == Sets{"", "2-4", "4", "2-3"});
  CHECK(node.grade("a").ends_with("refuses its CPUs: CPU 4 is not exclusive"));
  CHECK(node.grade("b") == "quiet");
  node.check_drift();
  CHECK(node.helper->requested().back() == "2-3");
  CHECK(node.grade("b") == "quiet");
  CHECK(node.count("not-quiet") == 1);
  node.helper->answer = tests::FakeHelper::grant;
  node.check_drift();
  CHECK(node.grade("a") == "quiet");
}

TEST_CASE("CPUs that are held and then refused are given back, and tried one by one") {
  Node node;
  node.own("a", {2, 3});
  node.own("b", {4});
  node.helper->requests.clear();
  node.helper->answer = [](const http::Request& request) {
    return request.body.find('3') != std::string::npos ||
                   request.body.find("2-4") != std::string::npos
               ? http::error_response(400, "CPU 3 is not online")
               : tests::FakeHelper::grant(request);
  };
  node.check_drift();
  CHECK(node.helper->requested() == Sets{"2-4", "2-3", "4"});
  CHECK(node.grade("b") == "quiet");
  CHECK(node.grade("a").find("CPU 3 is not online") != std::string::npos);
}
