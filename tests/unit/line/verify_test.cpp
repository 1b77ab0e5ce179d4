// SPDX-License-Identifier: Apache-2.0
// verify: the kernel read afresh, how much of it was read, and the verdict.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "affinity/line/others.hpp"
#include "base/text.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using namespace ka::tests;
using policy::CpuSet;

namespace {

bool has_unread(const line::VerifyReport& report, const std::string& sandbox,
                const std::string& text) {
  return std::ranges::any_of(report.findings, [&](const line::Finding& finding) {
    return finding.severity == line::Severity::kUnknown && finding.sandbox == sandbox &&
           finding.text.find(text) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("verify finds a group of vCPUs outside its container's CPUs") {
  LineScene scene;
  scene.boot_vm(100, 2);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5, 6}, true));
  REQUIRE(scene.container("s1", "side", {0}, false));
  REQUIRE(scene.verifier().verify().ok());
  const int serving = scene.cpus(110) == "4-6" ? 110 : 111;
  scene.calls.own[serving] = {0, 4, 5, 6};
  const auto findings = scene.verifier().verify().findings;
  CHECK(std::ranges::count(findings, "I8", &line::Finding::invariant) == 1);
}

TEST_CASE("verify names each thread on a dedicated vCPU's CPU") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.node.thread(100, 102, "call_rcu");
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE(scene.container("s1", "side", {0}, false));
  REQUIRE(scene.verifier().verify().ok());
  for (const int tid : {100, 102}) scene.calls.own[tid] = {0, 5};
  std::set<std::string> texts;
  for (const line::Finding& finding : scene.verifier().verify().findings) {
    if (finding.invariant == "I4") texts.insert(finding.text);
  }
  CHECK(texts ==
        std::set<std::string>{"emulator (thread 100) may run on the CPU of a dedicated vCPU: 5",
                              "emulator (thread 102) may run on the CPU of a dedicated vCPU: 5"});
}

TEST_CASE("a guest whose agent has not confirmed the last request is not called ok") {
  LineScene scene;
  scene.boot_vm(100, 1);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {0, 1}, false));
  board::GuestView guest{.address = "vsock:3", .connected = true, .text = "agent"};
  scene.board().set_guest("s1", guest);
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kOk);
  guest.report = policy::GuestReport{};
  scene.board().set_guest("s1", guest);
  const auto report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kDegraded);
  CHECK(std::ranges::count(report.findings, "guest-unconfirmed", &line::Finding::reason) == 1);
  guest.current = true;
  scene.board().set_guest("s1", guest);
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kOk);
}

TEST_CASE("a thread bound by the kernel is left alone, and degrades the owner of its CPUs") {
  LineScene scene;
  for (const int pid : {100, 200}) scene.boot_vm(pid, 3);
  scene.node.bound_thread(100, 102, "iou-wrk-100");
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.add("b", 200));
  REQUIRE(scene.container("a", "app", {4, 5}, true));
  REQUIRE(scene.container("b", "other", {6}, true));
  CHECK(scene.cpus(102) == "0-7");
  const line::VerifyReport report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kDegraded);
  const auto text_of = [&](const std::string& invariant) {
    const auto found = std::ranges::find_if(report.findings, [&](const line::Finding& finding) {
      return finding.sandbox == "a" && finding.reason == "kernel-thread" &&
             finding.invariant == invariant;
    });
    return found == report.findings.end() ? std::string() : found->text;
  };
  CHECK(text_of("isolation") ==
        "container app is not isolated: CPUs 4-5 also carry threads that the kernel binds: "
        "emulator \"iou-wrk-100\"");
  CHECK(text_of("others") ==
        "emulator (thread 102) \"iou-wrk-100\" is bound by the kernel to 0-7, and may run on 6, "
        "which another pod owns");
}

TEST_CASE("a CPU with two owners is a finding that names both, and is notified once") {
  LineScene scene;
  scene.boot_vm(100, 4);
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.container("a", "app", {4, 5}, true));
  policy::ledger::PodSeen runc;
  runc.id = "runc";
  REQUIRE(scene.requests().submit({policy::ledger::Source::kApi, runc}));
  REQUIRE(scene.container("runc", "db", {5, 6}, true));
  REQUIRE(scene.container("runc", "db", {5, 6, 7}, true));
  for (const int tid : {110, 111, 112, 113}) {
    CHECK(scene.cpus(tid).find('5') == std::string::npos);
  }
  CHECK(std::ranges::count(scene.notified, "cpus-contested") == 1);
  const line::VerifyReport report = scene.verifier().verify();
  const auto found = std::ranges::find(report.findings, "owners", &line::Finding::invariant);
  REQUIRE(found != report.findings.end());
  CHECK(found->sandbox == "a");
  CHECK(found->text ==
        "CPU 5 is assigned to more than one pod: container app of pod a, container db of pod runc");
  REQUIRE(scene.container("runc", "db", {6, 7}, true));
  CHECK(std::ranges::count(scene.notified, "cpus-uncontested") == 1);
}

TEST_CASE("a pod that joins a contest is notified, and each owner learns of the others") {
  LineScene scene;
  scene.boot_vm(100, 4);
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.container("a", "app", {4, 5}, true));
  const auto contested = [&] { return std::ranges::count(scene.notified, "cpus-contested"); };
  for (const std::string pod : {"b", "c"}) {
    policy::ledger::PodSeen runc;
    runc.id = pod;
    REQUIRE(scene.requests().submit({policy::ledger::Source::kApi, runc}));
  }
  REQUIRE(scene.container("b", "db", {5}, true));
  CHECK(contested() == 1);
  REQUIRE(scene.container("c", "job", {5}, true));
  CHECK(contested() == 2);
  const auto texts = [&] {
    std::set<std::string> set;
    for (const line::Finding& one : scene.verifier().verify().findings) set.insert(one.text);
    return set;
  };
  CHECK(texts().contains(
      "container app is not isolated: CPU 5 is also assigned to container db of pod b, container "
      "job of pod c"));
  REQUIRE(scene.remove("b"));
  CHECK(contested() == 2);
  CHECK(texts().contains(
      "container app is not isolated: CPU 5 is also assigned to container job of pod c"));
  REQUIRE(scene.remove("c"));
  CHECK(std::ranges::count(scene.notified, "cpus-uncontested") == 1);
}

TEST_CASE("a CPU that two running containers of a pod own degrades both, and has no vCPU") {
  LineScene scene;
  scene.boot_vm(100, 4);
  REQUIRE(scene.add("a", 100));
  REQUIRE(scene.container("a", "app", {4, 5}, true));
  REQUIRE(scene.container("a", "db", {5, 6}, true));
  const auto vcpu_on = [&](const std::string& cpu) {
    return std::ranges::count_if(std::array{110, 111, 112, 113},
                                 [&](int tid) { return scene.cpus(tid) == cpu; });
  };
  CHECK(vcpu_on("4") == 3);  // with the two that float: no CPU is left for housekeeping
  CHECK(vcpu_on("6") == 1);
  for (const int tid : {100, 110, 111, 112, 113}) {
    CHECK(scene.cpus(tid).find('5') == std::string::npos);
  }
  CHECK(scene.broken().empty());
  CHECK(std::ranges::count(scene.notified, "cpus-contested") == 1);
  const line::VerifyReport report = scene.verifier().verify();
  const auto found = std::ranges::find(report.findings, "owners", &line::Finding::invariant);
  REQUIRE(found != report.findings.end());
  CHECK(found->text ==
        "CPU 5 is assigned to more than one container: container app of pod a, container db of "
        "pod a");
  CHECK(std::ranges::count(report.findings, "cpus-contested", &line::Finding::reason) == 3);
  REQUIRE(scene.requests().submit(
      {policy::ledger::Source::kApi, policy::ledger::ContainerExited{"a", "db"}}));
  CHECK(std::ranges::count(scene.notified, "cpus-uncontested") == 1);
  CHECK(vcpu_on("5") == 1);
}

TEST_CASE("the end of a VM ends the contest for its CPUs") {
  LineScene scene;
  scene.boot_two(2);
  REQUIRE(scene.container("a", "app", {4}, true));
  REQUIRE(scene.container("b", "app", {4}, true));
  scene.node.end_process(200);
  scene.calls.gone.insert(200);
  scene.line().refresh("b");
  CHECK(std::ranges::count(scene.notified, "cpus-uncontested") == 1);
}

TEST_CASE("verify reads the kernel and names each violation") {
  LineScene scene;
  scene.boot_two(3);
  REQUIRE(scene.container("a", "c", {2, 3}, true));
  REQUIRE(scene.container("b", "c", {0, 1}, false));
  CHECK(scene.verifier().verify().ok());
  CHECK(scene.verifier().verify().seen.threads == 10);
  scene.calls.own[211] = {1, 2};
  const auto report = scene.verifier().verify();
  REQUIRE_FALSE(report.findings.empty());
  const auto names = [&](const std::string& invariant) {
    return std::ranges::any_of(report.findings, [&](const line::Finding& finding) {
      return finding.invariant == invariant && finding.sandbox == "b" &&
             finding.actual == CpuSet{1, 2};
    });
  };
  CHECK(names("I2"));
  CHECK(names("drift"));
  CHECK(std::ranges::any_of(report.findings, [](const line::Finding& finding) {
    return finding.text ==
           "vCPU 1 (thread 211) may run on a CPU that is exclusive to another pod: 2";
  }));
  scene.calls.writes.clear();
  scene.verifier().verify();
  CHECK(scene.calls.writes.empty());
}

TEST_CASE("verify is not ok with a thread whose mask it could not read") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("a", 100));
  scene.calls.get_faults[111] = {EPERM, 100};
  const auto report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kUnknown);
  CHECK_FALSE(report.ok());
  CHECK(report.seen.threads == 4);
  CHECK(report.known.threads == 5);
  CHECK(has_unread(report, "a", "vCPU 1 (thread 111)"));

  scene.calls.get_faults[111] = {ESRCH, 100};
  scene.calls.gone.insert(111);  // it ended: there is nothing to be read
  CHECK(scene.verifier().verify().known.threads == 4);
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kOk);
}

TEST_CASE("verify is not ok with a sandbox that it could not read") {
  LineScene scene;
  scene.boot_two(3);
  std::filesystem::remove_all(scene.node.proc() / "200");
  const auto unread = scene.verifier().verify();
  CHECK(unread.verdict() == line::Verdict::kUnknown);
  CHECK(unread.seen.sandboxes == 1);
  CHECK(unread.known.sandboxes == 2);
  CHECK(unread.known.threads == 10);
  CHECK(has_unread(unread, "b", "cannot read"));

  scene.calls.own[111] = {3, 4};
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kViolated);  // that is certain

  scene.calls.own.erase(111);
  scene.calls.gone.insert(200);  // the kernel says that it ended
  const auto ended = scene.verifier().verify();
  CHECK(ended.verdict() == line::Verdict::kOk);
  CHECK(ended.known.sandboxes == 1);
}

TEST_CASE("verify on an empty node has read 0 of 0") {
  LineScene scene;
  const auto report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kOk);
  CHECK(report.known.sandboxes == 0);
  CHECK(report.known.threads == 0);
}

TEST_CASE("other pods' threads on exclusive CPUs are named, and never a violation") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  scene.node.tenant("kubepods/podu9/c9", "0-7", "4711\n4712\n");
  scene.node.tenant("kubepods/podu8/c8", "0-1", "4811\n");
  scene.node.tenant("system.slice/cron.service", "0-7", "71\n");
  scene.calls.own[4712] = {0};
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  const auto others = [&] {
    auto findings = scene.verifier().verify().findings;
    std::erase_if(findings, [](const line::Finding& one) { return one.invariant != "others"; });
    return findings;
  };

  const auto early = others();
  REQUIRE(early.size() == 2);
  CHECK(early[0].severity == line::Severity::kNote);
  CHECK(early[0].reason == "other-container");
  CHECK(early[0].subject == "kubepods/podu9/c9");
  CHECK(early[0].actual == CpuSet{2, 3});
  CHECK(early[0].text.starts_with("not ours: container c9 of pod u9 may run on CPUs 2-3, which"));
  CHECK(early[1].severity == line::Severity::kNote);
  CHECK(early[1].text.starts_with("host: 1 threads of services"));

  scene.clock.advance(line::kGraceOfOthers);
  CHECK(others()[0].severity == line::Severity::kNote);
  scene.clock.advance(std::chrono::milliseconds(1));
  CHECK(others()[0].severity == line::Severity::kDegraded);
  CHECK(others()[1].severity == line::Severity::kNote);
  CHECK(scene.verifier().verify().ok());

  // CRI-O's monitor lies in a pod's slice, and kubelet narrows it never.
  scene.node.tenant("kubepods/podu7/crio-conmon-d7", "0-7", "4911\n");
  REQUIRE(others().size() == 2);
  CHECK(others()[1].text.starts_with("host: 2 threads of services"));

  // A pod that is named by its container's id, as no source reported its uid.
  REQUIRE(scene.requests().submit({policy::ledger::Source::kApi,
                                   policy::ledger::PodSeen{.id = "p9", .pod_name = "shop/cart"}}));
  REQUIRE(scene.container("p9", "c9", {}, false));
  CHECK(others()[0].text.starts_with("not ours: container c9 of pod shop/cart"));

  // Nor does kubelet narrow what holds a pod's namespaces.
  scene.node.tenant("kubepods/podu9/cri-containerd-p9.scope", "0-7", "4921\n");
  REQUIRE(others().size() == 2);
  CHECK(others()[1].text.starts_with("host: 3 threads of services"));

  scene.calls.own[4711] = {1};  // narrowed by itself, though its cgroup allows more
  REQUIRE(others().size() == 1);
  CHECK(others()[0].reason == "host-threads");
}

TEST_CASE("a pod that may have a VM which cannot be seen is known, not seen, and unknown") {
  LineScene scene;
  scene.board().set_source(policy::ledger::Source::kNri,
                           {true, "containerd", false, {{"g", "/proc/7/status: no memory"}}});
  const auto report = scene.verifier().verify();
  CHECK(report.known.sandboxes == 1);
  CHECK(report.seen.sandboxes == 0);
  CHECK_FALSE(report.ok());
  CHECK(has_unread(report, {}, "cannot see whether pod g, which nri reports, has a VM: /proc/7/"));
}

TEST_CASE("names that others give to their cgroups are shown escaped") {
  LineScene scene;
  scene.boot_vm(100, 3);
  REQUIRE(scene.add("s1", 100));
  scene.node.tenant("kubepods/podu9/y\xff\xfe", "0-7", "4711\n");
  scene.node.tenant("kubepods/podu9/ok\n\x1b[31m\xe2\x80\xae", "0-7", "4712\n");
  scene.node.tenant("kubepods/podu9/unread\x9b", "0-7", "");
  std::filesystem::remove(scene.node.cgroup() / "kubepods/podu9/unread\x9b/cgroup.threads");
  std::filesystem::create_directory(scene.node.cgroup() /
                                    "kubepods/podu9/unread\x9b/cgroup.threads");  // EISDIR
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  std::set<std::string> subjects;
  for (const line::Finding& finding : scene.verifier().verify().findings) {
    CAPTURE(finding.text);
    for (const auto& text : {finding.subject, finding.text, finding.remedy}) {
      CHECK(base::is_printable(text, base::kMaxPath));
    }
    if (finding.reason == "other-container") subjects.insert(finding.subject);
  }
  CHECK(subjects == std::set<std::string>{"kubepods/podu9/y\\xff\\xfe",
                                          "kubepods/podu9/ok\\x0a\\x1b[31m\\u{202e}"});
  CHECK(has_unread(scene.verifier().verify(), {}, "kubepods/podu9/unread\\x9b/cgroup.threads"));
}

TEST_CASE("masks of others that cannot be read are unknown, and threads that ended are not") {
  LineScene scene;
  scene.boot_vm(100, 3);
  scene.node.tenant("kubepods/podu9/c9", "0-7", "4711\n4712\n");
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  scene.calls.get_faults = {{4711, {ESRCH, 1}}, {4712, {ESRCH, 1}}};
  CHECK(scene.verifier().verify().ok());
  scene.calls.get_faults = {{4711, {EPERM, 1}}, {4712, {EPERM, 1}}};
  const auto report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kUnknown);
  CHECK(has_unread(report, "",
                   "masks of 2 threads in cgroup kubepods/podu9/c9 cannot be read: get: Operation "
                   "not permitted"));
}

TEST_CASE("a source that is down is unknown, one that the node does not have is not") {
  using policy::ledger::Source;
  LineScene scene;
  scene.board().set_source(Source::kKubelet, {true, "static"});
  scene.board().set_source(Source::kNri, {false, "no such file", true});
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kOk);
  scene.board().set_source(Source::kKubelet,
                           {false, "unexpected end; keeping the last good state"});
  const auto report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kUnknown);
  CHECK(has_unread(report, "",
                   "source kubelet is down, owners of CPUs may have changed: unexpected end"));
  scene.board().set_source(Source::kKubelet, {false, "does not exist", true});
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kOk);
}

TEST_CASE("PodResources is missed where kubelet's state does not decide") {
  using namespace policy::ledger;
  LineScene scene;
  scene.board().set_source(Source::kPodResources, {false, "connection refused"});
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kUnknown);
  KubeletSeen seen;
  seen.claims.emplace();
  scene.line().handle({Source::kKubelet, seen});
  CHECK(scene.verifier().verify().verdict() == line::Verdict::kOk);
}

TEST_CASE("while the node's cgroups cannot be found, nothing is planned without them") {
  LineScene scene;
  scene.boot_pod("s1", 100, 3);
  REQUIRE(scene.add("s1", 100));
  REQUIRE(scene.container("s1", "app", {2, 3}, true));
  REQUIRE(scene.verifier().verify().ok());
  const auto restore = scene.node.make_unreadable("proc/self/mountinfo");
  scene.start();
  scene.calls.own[111] = {0, 5};
  scene.calls.writes.clear();
  scene.line().adopt();
  scene.line().check_drift();
  CHECK(scene.calls.writes.empty());
  const auto report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kUnknown);
  CHECK(has_unread(report, "", "cannot find the cgroups of this node: "));
  CHECK(has_unread(report, "s1", "mountinfo"));
  restore();
  scene.line().check_drift();
  CHECK(scene.verifier().verify().ok());
  CHECK(scene.line().node().view("s1")->cgroup_cpus);
}

TEST_CASE("a vCPU that cannot be read is not said to share the CPU that it once had") {
  LineScene scene;
  scene.boot_two(2, "s1", "s2");
  REQUIRE(scene.container("s1", "app", {3}, true));
  REQUIRE(scene.cpus(111) == "3");
  scene.calls.get_faults[111] = {EIO, 1000};
  REQUIRE(scene.container("s1", "app", {2}, true));
  REQUIRE(scene.container("s2", "app", {3}, true));
  REQUIRE(scene.cpus(211) == "3");
  std::vector<std::string> texts;
  for (const line::Finding& finding : scene.broken()) texts.push_back(finding.text);
  CHECK(texts ==
        std::vector<std::string>{"vCPU 1 (thread 111) cannot be read: get: Input/output error"});
}

TEST_CASE("a container beside a sandbox's exclusive CPUs is reported to their owner") {
  LineScene scene;
  scene.boot_two(2, "s1", "s2");
  REQUIRE(scene.container("s1", "app", {2}, true));
  REQUIRE(scene.container("s2", "app", {5}, true));
  scene.node.tenant("kubepods/podu9/c9", "5-6", "4711\n");
  scene.calls.own[4711] = {5, 6};
  const auto findings = scene.verifier().verify().findings;
  const auto other = std::ranges::find(findings, "other-container", &line::Finding::reason);
  REQUIRE(other != findings.end());
  CHECK(other->sandbox == "s2");
  CHECK(other->actual == CpuSet{5});
}

TEST_CASE("verify finds a CPU on which dedicated vCPUs of two sandboxes run") {
  LineScene scene;
  scene.boot_two(2, "s1", "s2");
  REQUIRE(scene.container("s1", "app", {2}, true));
  REQUIRE(scene.container("s2", "app", {5}, true));
  REQUIRE(scene.cpus(211) == "5");
  scene.calls.own[211] = {2};
  const auto findings = scene.verifier().verify().findings;
  CHECK(std::ranges::count(findings, "I3", &line::Finding::invariant) == 1);
}

TEST_CASE("verify compares kubelet's state with PodResources while both are current") {
  using namespace policy::ledger;
  LineScene scene;
  const auto handle = [&](Source source, auto body) {
    scene.line().handle({source, std::move(body)});
  };
  handle(Source::kNri, PodSeen{.id = "a", .pod_uid = "uid-a", .pod_name = "ns/a"});
  handle(Source::kKubelet, KubeletSeen{CpuSet::range(0, 3), {{Claim{"uid-a", "app", {4, 5}}}}});
  handle(Source::kPodResources,
         ResourcesSeen{CpuSet::range(2, 7), {Assignment{"ns/a", "app", {4}, {}}}});
  scene.line().source_synced(Source::kPodResources);
  const auto reasons = [&] {
    std::vector<std::string> found;
    for (const auto& one : scene.verifier().verify().findings) found.push_back(one.reason);
    return found;
  };
  CHECK(reasons() == std::vector<std::string>{"sources-disagree"});
  handle(Source::kKubelet, KubeletSeen{CpuSet::range(0, 2), {{Claim{"uid-a", "app", {4, 5}}}}});
  CHECK(reasons().empty());
}
