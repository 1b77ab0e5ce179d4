// SPDX-License-Identifier: Apache-2.0
// cpu-quota.crio.io: no CFS quota stops a container's dedicated vCPUs, by kubelet's files; and what
// is said where one does.
#include <string>

#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/unit/partitions/tuned_node.hpp"

using namespace ka;
using policy::TuningKind;
using tests::tuned_options;

namespace {

constexpr const char* kQuota = "cpu-quota.crio.io";
constexpr const char* kPod = "kubepods/podu1";
constexpr const char* kLimit = "300000 100000\n";

/// The VM of "s1" in a pod that kubelet limits to 3 CPUs.
struct Node : tests::TunedNode {
  explicit Node(line::Options options = tuned_options()) : TunedNode(std::move(options)) {
    for (const int tid : {110, 111, 112}) put(tid, std::string(kPod) + "/s1");
    limit(std::string(kPod) + "/s1", "max 100000\n");
    limit(kPod, kLimit);
    limit("kubepods", "max 100000\n");
  }

  void put(int tid, const std::string& cgroup) const {
    node.write("proc/" + std::to_string(tid) + "/cgroup", "0::/" + cgroup + '\n');
  }
  void limit(const std::string& cgroup, const std::string& text) const {
    node.write("cgroup/" + cgroup + "/cpu.max", text);
  }
  std::string limit_of(const std::string& cgroup) const {
    return base::read_file(node.cgroup() / cgroup / "cpu.max").value();
  }
  /// A container with a quota of its own, as its spec has it.
  void own_with_quota() {
    policy::ContainerFacts facts;
    facts.id = "app";
    facts.cpus = {2, 3};
    facts.quota = 200000;
    facts.period = 100000;
    REQUIRE(requests().submit(
        {policy::ledger::Source::kApi, policy::ledger::whole_report("s1", facts, true)}));
    run_loop();
  }
  /// What the guest's agent says of that container's quota.
  void report_guest(bool is_lifted) {
    board::GuestView guest;
    guest.connected = true;
    guest.report.emplace();
    policy::GuestContainerState state;
    state.id = "app";
    state.quota_lifted = is_lifted;
    guest.report->containers.push_back(state);
    board().set_guest("s1", guest);
  }
  void expect_untouched() {
    CHECK(limit_of(kPod) == kLimit);
    CHECK(socket->requests.empty());
  }
};

const std::string kInForce = "cpu-quota.crio.io: disable on 2-3";

}  // namespace

TEST_CASE("quota: the pod of dedicated vCPUs has none until it is released") {
  Node node;
  node.request({{kQuota, "disable"}});
  CHECK(node.limit_of(kPod) == kLimit);
  node.own({2, 3});
  CHECK(node.limit_of(kPod) == "max\n");
  CHECK(node.shown() == kInForce);
  CHECK(node.findings("not-tuned") == 0);
  node.line().release_all();
  node.run_loop();
  CHECK(node.limit_of(kPod) == kLimit);
  CHECK(node.shown() == "cpu-quota.crio.io: disable on , not: it is released");
}

TEST_CASE(
    "quota: what kubelet writes is a finding until it is repaired, and comes back in the end") {
  Node node;
  node.request({{kQuota, "disable"}});
  node.own({2, 3});
  node.limit(kPod, "400000 100000\n");
  CHECK(node.shown() ==
        kInForce + ", not: " + (node.node.cgroup() / kPod).string() + " has a CFS quota");
  CHECK(node.findings("not-tuned") == 1);
  node.check_drift();
  CHECK(node.limit_of(kPod) == "max\n");
  CHECK(node.shown() == kInForce);
  REQUIRE(node.remove("s1"));
  node.run_loop();
  CHECK(node.limit_of(kPod) == "400000 100000\n");
}

TEST_CASE("quota: without the helper the request is not in force, unless there is no quota") {
  Node node;
  node.hang_up();
  node.request({{kQuota, "disable"}});
  node.own({2, 3});
  CHECK(node.shown().find("not: the helper (kata-affinity-helper) does not respond") !=
        std::string::npos);
  CHECK(node.verifier().verify().verdict() == line::Verdict::kDegraded);
  node.limit(kPod, "max 100000\n");
  CHECK(node.shown() == kInForce);
}

TEST_CASE("quota: VMs outside kubelet's pods keep theirs, and it is said") {
  Node node;
  for (const int tid : {110, 111, 112}) node.put(tid, "vms/one");
  node.limit("vms/one", kLimit);
  node.request({{kQuota, "disable"}});
  node.own({2, 3});
  CHECK(node.limit_of("vms/one") == kLimit);
  CHECK(node.shown() == kInForce + ", not: it is in no cgroup of a pod of kubelet's");
}

TEST_CASE("quota: what is not requested, or not allowed, or only observed, is left alone") {
  line::Options options = tuned_options();
  SECTION("of another container") {
    Node node(options);
    node.request({{std::string(kQuota) + "/side", "disable"}, {kQuota, "enable"}});
    node.own({2, 3});
    node.expect_untouched();
    CHECK(node.findings("not-tuned") == 0);
  }
  SECTION("by the handler") {
    options.settings.allow_tuning.erase(TuningKind::kQuota);
    Node node(options);
    node.request({{kQuota, "disable"}});
    node.own({2, 3});
    node.expect_untouched();
    CHECK(node.findings("tuning-refused") == 1);
  }
  SECTION("in mode observe") {
    options.observe = true;
    Node node(options);
    node.request({{kQuota, "disable"}});
    node.own({2, 3});
    node.expect_untouched();
    CHECK(node.shown().find("mode is \"observe\"") != std::string::npos);
  }
}

TEST_CASE("quota: a container without a VM, and one that is left to CRI-O") {
  const std::string id(64, 'c');
  Node node;
  node.limit("kubepods/poduid-r", "250000 100000\n");
  SECTION("under containerd") {
    const std::string cgroup = "kubepods/poduid-r/" + id;
    node.limit(cgroup, "200000 100000\n");
    node.put(300, cgroup);
    node.calls.own[300] = {6, 7};
    node.add_plain(id, {{kQuota, "disable"}});
    CHECK(node.limit_of(cgroup) == "max\n");
    CHECK(node.limit_of("kubepods/poduid-r") == "max\n");
    CHECK(node.shown() == "cpu-quota.crio.io: disable on 6-7");
    REQUIRE(node.requests().release("r"));
    node.run_loop();
    CHECK(node.limit_of(cgroup) == "200000 100000\n");
    CHECK(node.limit_of("kubepods/poduid-r") == "250000 100000\n");
  }
  SECTION("under CRI-O") {
    node.put(300, "kubepods/poduid-r/crio-" + id);
    node.calls.own[300] = {6, 7};
    node.add_plain("crio-" + id, {{kQuota, "disable"}});
    CHECK(node.limit_of("kubepods/poduid-r") == "250000 100000\n");
    CHECK(node.shown().find("it has no VM, and is left to CRI-O") != std::string::npos);
  }
}

TEST_CASE("quota: one that the guest enforces still is a finding") {
  Node node;
  node.request({{kQuota, "disable"}});
  node.own_with_quota();
  CHECK(node.limit_of(kPod) == "max\n");
  CHECK(node.shown() ==
        kInForce +
            ", not: in its guest it has a CFS quota, which only kata-affinity-agent there "
            "could lift");
  node.report_guest(false);
  CHECK(node.shown() == kInForce + ", not: in its guest it has a CFS quota");
  node.report_guest(true);
  CHECK(node.shown() == kInForce);
}

TEST_CASE(
    "quota: after both were killed, what was taken away is given back where none may have it") {
  Node node;
  node.request({{kQuota, "disable"}});
  node.own({2, 3});
  node.start_helper();
  node.start();
  node.line().configure(tests::partition_options(true, policy::plan::Grade::kBestEffort));
  node.follow();
  CHECK(node.limit_of(kPod) == kLimit);
}
