// SPDX-License-Identifier: Apache-2.0
// Partitions of quiet sandboxes on a node of files: what kata-affinity-helper's own code is
// requested over its socket, makes of it in a tree of cgroups, and what the node shows then.
#include <algorithm>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/unit/partitions/scene.hpp"

using namespace ka;
using policy::plan::Grade;

namespace {

using Node = tests::PartitionNode;
using tests::kCgroup;
using tests::kInIt;

line::Options quiet_options(bool partitions = true, Grade grade = Grade::kQuiet) {
  return tests::partition_options(partitions, grade);
}

}  // namespace

TEST_CASE("dedicated vCPUs of a quiet sandbox are in a partition, as long as there are any") {
  Node node;
  CHECK(node.problem() == "none");
  node.own({2, 3});
  CHECK(node.tree.isolated() == "2-3");
  CHECK(node.tree.where(110) == kCgroup);
  CHECK(node.tree.where(111) == kInIt);
  CHECK(node.tree.where(112) == kInIt);
  CHECK(node.problem().empty());
  CHECK(node.verifier().verify().ok());
  REQUIRE(node.remove("s1"));
  node.run_loop();
  CHECK(node.tree.isolated().empty());
  CHECK_FALSE(std::filesystem::exists(node.record));
}

TEST_CASE("nothing is requested where no sandbox is quiet, or partitions are switched off") {
  Node node(GENERATE(false, true) ? quiet_options(false) : tests::at_home());
  node.own({2, 3});
  CHECK(node.tree.isolated().empty());
  CHECK(node.problem() == "none");
  for (const std::string& one : node.socket->requests) CHECK(one.find("/v1/quiet") < 10);
}

TEST_CASE("what an earlier daemon requested is given up") {
  Node node;
  node.own({2, 3});
  node.start();
  node.line().configure(tests::at_home());
  node.follow();
  CHECK(node.tree.isolated().empty());
}

TEST_CASE("a container gets more CPUs, and fewer") {
  Node node;
  node.own({2});
  CHECK(node.tree.isolated() == "2");
  node.own({2, 3});
  CHECK(node.tree.isolated() == "2-3");
  node.own({3});
  CHECK(node.tree.isolated() == "3");
}

TEST_CASE("release, observe and other settings give it back, and reconcile requests it again") {
  Node node;
  node.own({2, 3});
  node.line().release_all();
  node.run_loop();
  CHECK(node.tree.isolated().empty());
  CHECK(node.problem() == "none");
  node.line().reconcile_all();
  node.run_loop();
  CHECK(node.tree.isolated() == "2-3");
  node.line().configure(quiet_options(false));
  node.run_loop();
  CHECK(node.tree.isolated().empty());
}

namespace {

/// As Kata does: the kernel lets a vCPU onto none of its CPUs then, until it is back.
void move_out(Node& node) {
  for (const int tid : {110, 111, 112}) node.tree.put(tid, kCgroup);
  node.calls.own[111] = {0, 1};
  node.calls.set_faults[111] = {EINVAL, 10000};
}

void let_kernel_return_masks(Node& node) {
  node.socket->answer = [&node, answer = node.socket->answer](const http::Request& one) {
    http::Response response = answer(one);
    if (node.tree.where(111) == kInIt) {
      node.calls.own[111] = {2};
      node.calls.set_faults.clear();
    }
    return response;
  };
}

}  // namespace

TEST_CASE("vCPUs that Kata took out of the partition are back at once, as often as that happens") {
  Node node;
  node.own({2, 3});
  let_kernel_return_masks(node);
  for (int i = 0; i < 5; ++i) {
    move_out(node);
    node.line().refresh("s1");
    node.run_loop();
    CHECK(node.tree.where(111) == kInIt);
    CHECK(node.cpus(111) == "2");
  }
}

TEST_CASE("a partition that others undo between two looks is notified once, and counted") {
  Node node;
  std::vector<std::string> drifts;
  const auto subscription = node.board().feed().subscribe(
      board::NotificationKind::kDrift, [&drifts](const board::Notification& drift) {
        drifts.push_back(drift.sandbox + ' ' + drift.reason + ": " + drift.text);
      });
  const auto undo = [&node] {
    REQUIRE(node.tree.write(kInIt, "cpuset.cpus.partition", "member"));
    node.keeper->check();
    REQUIRE(node.tree.isolated() == "2-3");
  };
  node.own({2, 3});
  node.check_drift();
  CHECK(drifts.empty());
  undo();
  undo();
  node.check_drift();
  node.check_drift();
  const std::string twice =
      "s1 partition: another program had undone the partition of CPUs 2-3 2 times: it was made "
      "again";
  CHECK(drifts == std::vector{twice});
  SECTION("a helper that was started again counts from 0") {
    node.start_helper();
    node.check_drift();
    CHECK(drifts.size() == 1);
    undo();
    node.check_drift();
    CHECK(drifts.size() == 2);
    CHECK(node.board().counters().partitions_undone == 3);
  }
  SECTION("a daemon that was started again has counted none") {
    node.start();
    node.follow();
    CHECK(node.board().counters().partitions_undone == 0);
  }
}

TEST_CASE("they are requested back less and less often where that does not help") {
  Node node;
  node.own({2, 3});
  move_out(node);
  for (int i = 0; i < 100; ++i) {
    node.line().refresh("s1");
    node.run_loop();
  }
  CHECK(node.requested() < 30);
}

TEST_CASE("a CPU on which another thread of the sandbox is planned is in no partition") {
  line::Options options = quiet_options();
  options.settings.housekeeping = {policy::plan::Housekeeping::Kind::kCpus, {2}};
  Node node(options);
  node.own({2, 3});
  CHECK(node.tree.isolated() == "3");
  node.own({2});
  CHECK(node.tree.isolated().empty());
  CHECK(node.problem() == "other threads of the sandbox use its CPUs (housekeeping)");
}

TEST_CASE("what is requested is shown as what it is, not as what was held before") {
  Node node;
  node.own({2, 3});
  const auto answer = node.socket->answer;
  node.socket->answer = [&](const http::Request& one) {
    if (one.target == "/v1/quiet") return answer(one);
    return http::Response{.status = 400, .body = R"({"error":"no"})"};
  };
  node.own({2, 3, 4});
  CHECK(node.problem().find("refuses") != std::string::npos);
  CHECK(node.tree.isolated() == "2-3");
  node.own({2, 3});
  CHECK(node.problem().empty());
}

TEST_CASE("services that the kernel keeps out do not make a sandbox best-effort") {
  Node node;
  node.unit = R"({"name":"init.scope","cpus":"2-3","why":"busy"})";
  node.own({2, 3});
  CHECK(node.problem().empty());
  CHECK(node.is_quiet());
  REQUIRE(node.tree.write("/kubepods/s1", "cpuset.cpus.exclusive", ""));
  node.tree.refuses["/kubepods/s1/cpuset.cpus.exclusive"] = EINVAL;
  node.check_drift();
  CHECK_FALSE(node.problem().empty());
  CHECK_FALSE(node.is_quiet());
}

TEST_CASE("a helper that does not respond is named, and followed when it does") {
  Node node;
  node.own({2, 3});
  node.hang_up();
  node.check_drift();
  CHECK(node.problem().find("does not respond") != std::string::npos);
  CHECK(node.tree.isolated() == "2-3");
  node.listen();
  node.clock.advance(std::chrono::minutes(1));
  node.run_loop();
  CHECK(node.problem().empty());
}

TEST_CASE("a kernel that has none is named by verify, as a note") {
  Node node;
  node.tree.has_exclusive = false;
  node.own({2, 3});
  CHECK(node.problem().find("older than 6.7") != std::string::npos);
  CHECK(node.is_quiet());
  const auto report = node.verifier().verify();
  CHECK(report.ok());
  const auto is_note = [](const line::Finding& one) {
    return one.reason == "no-partition" && one.severity == line::Severity::kNote;
  };
  CHECK(std::ranges::any_of(report.findings, is_note));
}

TEST_CASE("dedicated vCPUs of a realtime sandbox are real-time threads") {
  line::Options options = quiet_options(true, Grade::kRealtime);
  options.quiet.realtime_priority = 5;
  Node node(options);
  node.cpu_power.values["2/power/pm_qos_resume_latency_us"] = "0";
  CHECK(node.grade().in_force() == Grade::kBestEffort);
  node.own({2, 3});
  CHECK(node.scheduling.of(111) == helper::realtime_policy(5));
  CHECK(node.cpu_power.values["2/power/pm_qos_resume_latency_us"] == "n/a");
  CHECK(node.scheduling.of(110) == helper::SchedulingPolicy{});
  CHECK(node.grade().in_force() == Grade::kRealtime);
  CHECK(node.grade().not_realtime.empty());
  node.line().configure(quiet_options());
  node.run_loop();
  CHECK(node.scheduling.of(111) == helper::SchedulingPolicy{});
  CHECK(node.grade().in_force() == Grade::kQuiet);
}

TEST_CASE("a namespace alone makes a sandbox realtime") {
  line::Options options = quiet_options(true, Grade::kBestEffort);
  options.quiet.realtime_namespaces = {"trading"};
  Node node(options);
  policy::ledger::PodSeen pod{.id = "s1"};
  pod.pod_name = "trading/engine";
  node.line().handle({policy::ledger::Source::kNri, pod});
  node.own({2, 3});
  CHECK(node.grade().in_force() == Grade::kRealtime);
  CHECK(node.scheduling.of(111) == helper::realtime_policy(1));
}

TEST_CASE("a realtime sandbox without a partition is quiet, and verify says why") {
  Node node(quiet_options(GENERATE(false, true), Grade::kRealtime));
  node.tree.has_exclusive = false;
  node.own({2, 3});
  CHECK(node.grade().in_force() == Grade::kQuiet);
  CHECK_FALSE(node.grade().not_realtime.empty());
  const auto report = node.verifier().verify();
  const auto is_degraded = [](const line::Finding& one) {
    return one.reason == "not-realtime" && one.severity == line::Severity::kDegraded;
  };
  CHECK(std::ranges::any_of(report.findings, is_degraded));
}

TEST_CASE("what the kernel leaves to others of a realtime sandbox's CPUs is said") {
  Node node(quiet_options(true, Grade::kRealtime));
  node.own({2, 3});
  const auto found = [&](const std::string& reason) {
    std::string text;
    for (const line::Finding& one : node.verifier().verify().findings) {
      if (one.reason == reason) text = one.text;
    }
    return text;
  };
  CHECK(found("throttled").empty());
  const auto write = [](const std::filesystem::path& file, const char* text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  write(node.node.proc() / "sys/kernel/osrelease", "6.8.0\n");
  write(node.node.proc() / "sys/kernel/sched_rt_period_us", "1000000\n");
  write(node.node.proc() / "sys/kernel/sched_rt_runtime_us", "950000\n");
  CHECK(found("throttled") ==
        "the kernel stops its vCPUs for 50 ms of each 1000 ms if they never sleep "
        "(sched_rt_runtime_us)");
  write(node.node.proc() / "sys/kernel/osrelease", "6.12.1-1-amd64\n");
  CHECK(found("throttled").empty());
  CHECK(found("fair-server").empty());
  CHECK(found("fair-server-unknown").find("CPUs 2-3: the fair server cannot be read") !=
        std::string::npos);
  write(node.node.debugfs() / "sched/fair_server/cpu2/runtime", "50000000\n");
  write(node.node.debugfs() / "sched/fair_server/cpu2/period", "1000000000\n");
  CHECK(found("throttled").empty());
  CHECK(found("fair-server-unknown").find("CPUs 3:") != std::string::npos);
  write(node.node.debugfs() / "sched/fair_server/cpu3/runtime", "90000000\n");
  write(node.node.debugfs() / "sched/fair_server/cpu3/period", "1000000000\n");
  CHECK(found("fair-server-unknown").empty());
  CHECK(found("no-limit").empty());
  CHECK(found("fair-server") ==
        "other tasks that wait on its CPUs get 50 ms of each 1000 ms (fair server)");
  write(node.node.debugfs() / "sched/fair_server/cpu2/runtime", "0\n");
  CHECK(found("no-limit").find("CPUs 2 get nothing") != std::string::npos);
  CHECK(found("fair-server").find("get 90 ms") != std::string::npos);
}

TEST_CASE("an exclusive container without a VM has its own cgroup as partition, until it exits") {
  const std::string id(64, 'c');
  const std::string cgroup = "/kubepods/poduid-r/" + id;
  line::Options options = quiet_options();
  options.quiet.namespaces = {"trading"};
  Node node(options);
  node.node.process(300, 1, "db", "/usr/bin/db");
  node.node.cgroup_procs(cgroup.substr(1), "300\n");
  node.tree.add("/kubepods/poduid-r");
  node.tree.add(cgroup, {6, 7});
  node.tree.put(300, cgroup);
  policy::ledger::PodSeen pod{.id = "r"};
  pod.pod_uid = "uid-r";
  pod.pod_name = "trading/db";
  node.line().handle({policy::ledger::Source::kNri, pod});
  const auto own = [&](const policy::CpuSet& cpus, bool is_exclusive = true) {
    REQUIRE(node.container("r", id, cpus, is_exclusive));
    node.run_loop();
  };
  own({6, 7});
  const auto partition = [&] { return node.board().partition("r"); };
  REQUIRE(partition() != nullptr);
  CHECK(partition()->problem.empty());
  CHECK(partition()->cpus == policy::CpuSet{6, 7});
  CHECK(node.tree.cpus_of(kCgroup) == "0-5");

  SECTION("it exits") {
    node.line().handle({policy::ledger::Source::kNri, policy::ledger::ContainerExited{"r", id}});
    node.run_loop();
  }
  SECTION("it is not exclusive any more") { own({0, 1}, false); }
  SECTION("the pod has another grade") {
    node.line().configure(tests::at_home());
    node.run_loop();
  }
  SECTION("there are to be no partitions") {
    options.quiet.partitions = false;
    node.line().configure(options);
    node.run_loop();
  }
  CHECK(partition() == nullptr);
  CHECK(node.tree.cpus_of(kCgroup) == "0-7");
}

TEST_CASE(
    "a container goes on without the process by which it was found, and keeps its partition") {
  const std::string id(64, 'c');
  const std::string cgroup = "/kubepods/poduid-r/" + id;
  line::Options options = quiet_options();
  options.quiet.namespaces = {"trading"};
  Node node(options);
  policy::ledger::PodSeen pod{.id = "r"};
  pod.pod_uid = "uid-r";
  pod.pod_name = "trading/db";
  node.line().handle({policy::ledger::Source::kNri, pod});
  REQUIRE(node.container("r", id, policy::CpuSet{6, 7}, true));
  node.run_loop();
  CHECK(node.board().partition("r") == nullptr);  // it has no process yet

  const auto run = [&](int pid) {
    node.node.process(pid, 1, "db", "/usr/bin/db");
    node.node.cgroup_procs(cgroup.substr(1), std::to_string(pid) + '\n');
    node.tree.put(pid, cgroup);
    node.check_drift();
  };
  node.tree.add("/kubepods/poduid-r");
  node.tree.add(cgroup, {6, 7});
  run(300);
  REQUIRE(node.board().partition("r") != nullptr);
  CHECK(node.board().partition("r")->problem.empty());
  node.node.end_process(300);
  node.tree.end(300);
  node.check_drift();
  run(301);
  node.check_drift();
  REQUIRE(node.board().partition("r") != nullptr);
  CHECK(node.board().partition("r")->problem.empty());
  CHECK(node.tree.cpus_of(kCgroup) == "0-5");
}
