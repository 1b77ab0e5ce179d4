// SPDX-License-Identifier: Apache-2.0
// Interrupts of passed-through devices: sent where the vCPUs are, kept there, given back.
#include <algorithm>
#include <filesystem>

#include "affinity/line/answer_limit.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using tests::LineScene;

namespace {

constexpr const char* kDevice = "0000:01:00.0";

std::string msix(int vector) { return "vfio-msix[" + std::to_string(vector) + "](0000:01:00.0)"; }

/// A VM of three vCPUs with a device, whose container owns CPUs 2-3.
struct Passed : LineScene {
  explicit Passed(line::Options options = tests::at_home()) : LineScene(8, std::move(options)) {
    node.vfio_device(kDevice, 12, "vfio0");
    node.msi(kDevice, 45, msix(0), "0-7");
    node.msi(kDevice, 46, msix(1), "0-7");
    boot_vm(100, 3);
    node.fd(100, 30, "/dev/vfio/12");
    REQUIRE(add("s1", 100));
    REQUIRE(container("s1", "app", {2, 3}, true));
  }

  std::string sent(int number) const { return node.interrupt_cpus(number); }
  line::SandboxView view() { return *line().node().view("s1"); }
  long count(const std::string& kind) const { return std::ranges::count(notified, kind); }
};

}  // namespace

TEST_CASE("a device's interrupts go to the CPUs of the vCPUs that receive them") {
  Passed scene;
  CHECK(scene.sent(45) == "2-3");
  CHECK(scene.sent(46) == "2-3");
  CHECK(scene.verifier().verify().ok());
  CHECK(scene.verifier().verify().interrupts == 2);
  const auto again = scene.requests().reconcile("s1");
  CHECK(again->interrupts == 0);
  CHECK(scene.line().check_drift().planned == 0);

  const auto moved = scene.container("s1", "app", {4, 5}, true);
  CHECK(moved->interrupts == 2);
  CHECK(scene.sent(45) == "4-5");
}

TEST_CASE("no interrupt is sent to CPUs whose owner is in doubt") {
  Passed scene;
  policy::ContainerFacts other;
  other.id = "b-app";
  other.cpus = {4, 5};
  other.quota = -1;
  using policy::ledger::Source;
  scene.line().handle({{Source::kNri, policy::ledger::PodSeen{.id = "b", .pod_uid = "uid-b"}},
                       {Source::kNri, policy::ledger::whole_report("b", other)}});
  REQUIRE(scene.container("s1", "app", CpuSet::range(2, 6), false));
  CHECK(scene.sent(45) == "2-3,6");
  other.shares = 2;
  scene.line().handle({{Source::kNri, policy::ledger::whole_report("b", other)}});
  CHECK(scene.sent(45) == "2-6");
}

TEST_CASE("interrupts requested later by the guest's driver are found by the drift check") {
  Passed scene;
  scene.node.msi(kDevice, 47, msix(2), "0-7");
  CHECK(scene.line().check_drift().interrupts == 1);
  CHECK(scene.sent(47) == "2-3");
  scene.node.free_interrupt(kDevice, 47);
  scene.line().check_drift();
  CHECK(scene.view().interrupts.size() == 2);
  CHECK(scene.board().counters().interrupt_drift_found == 0);
}

TEST_CASE("a plugged device is found, and an unplugged one forgotten") {
  Passed scene;
  scene.node.vfio_device("0000:02:00.0", 13, "vfio1");
  scene.node.msi("0000:02:00.0", 60, "vfio-msi[0](0000:02:00.0)", "0-7");
  scene.node.fd(100, 31, "/dev/vfio/13");
  scene.line().check_drift();
  CHECK(scene.sent(60) == "2-3");
  CHECK(scene.view().devices.size() == 2);
  std::filesystem::remove(scene.node.proc() / "100/fd/31");
  scene.line().check_drift();
  CHECK(scene.view().devices.size() == 1);
}

TEST_CASE(
    "who moves interrupts is answered and counted, and when it does not end ever more rarely") {
  Passed scene;
  for (int i = 1; i <= line::AnswerLimit::kAtOnce; ++i) {
    scene.node.send_interrupt(45, "0-7");
    scene.line().check_drift();
    CHECK(scene.sent(45) == "2-3");
    CHECK(scene.board().counters().interrupt_drift_found == static_cast<unsigned>(i));
  }
  scene.node.send_interrupt(45, "0-7");
  scene.line().check_drift();
  CHECK(scene.sent(45) == "0-7");
  CHECK(scene.view().interrupts[0].problem.find("keeps changing") != std::string::npos);
  CHECK(scene.broken().size() == 1);

  scene.node.msi(kDevice, 47, msix(2), "0-7");
  scene.line().check_drift();
  CHECK(scene.sent(47) == "2-3");  // nobody has touched this one

  scene.clock.advance(line::AnswerLimit::kShortest);
  scene.line().check_drift();
  CHECK(scene.sent(45) == "2-3");
}

TEST_CASE("a new plan is applied also during back-off") {
  Passed scene;
  for (int i = 0; i <= line::AnswerLimit::kAtOnce; ++i) {
    scene.node.send_interrupt(45, "0-7");
    scene.line().check_drift();
  }
  REQUIRE(scene.sent(45) == "0-7");
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  CHECK(scene.sent(45) == "4-5");
}

TEST_CASE("drift that verify has read is still repaired") {
  Passed scene;
  scene.node.send_interrupt(46, "7");
  const auto findings = scene.broken();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].invariant == "drift");
  CHECK(findings[0].subject == "interrupt 46 (vfio-msix[1](0000:01:00.0))");
  CHECK(scene.sent(46) == "7");
  scene.line().check_drift();
  CHECK(scene.sent(46) == "2-3");
}

TEST_CASE("release restores interrupts, also after a restart") {
  Passed scene;
  scene.node.msi(kDevice, 47, msix(2), "6");
  scene.line().check_drift();
  scene.start();
  scene.line().adopt();
  CHECK(scene.sent(45) == "2-3");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.sent(45) == "0-7");
  CHECK(scene.sent(47) == "6");
  CHECK(scene.line().check_drift().interrupts == 0);
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.sent(47) == "2-3");
  REQUIRE(scene.remove("s1"));
  CHECK(scene.sent(47) == "6");
}

TEST_CASE("release keeps writes of others and avoids CPUs of other pods") {
  Passed scene;
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s2", 200));
  REQUIRE(scene.container("s2", "other", {6, 7}, true));
  scene.node.send_interrupt(46, "1");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.sent(45) == "0-5");
  CHECK(scene.sent(46) == "1");
}

TEST_CASE("an interrupt leaves CPUs of another pod before the response") {
  Passed scene;
  REQUIRE(scene.container("s1", "app", CpuSet::range(0, 7), false));
  CHECK(scene.sent(45) == "0-7");
  scene.boot_vm(200, 2);
  REQUIRE(scene.add("s2", 200));
  policy::ContainerFacts other;
  other.id = "other";
  other.cpus = {6, 7};
  scene.line().narrow(
      {{policy::ledger::Source::kApi, policy::ledger::whole_report("s2", other, true)}},
      std::chrono::seconds(10));
  CHECK(scene.sent(45) == "0-5");
  scene.line().finish("s2");
  CHECK(scene.verifier().verify().ok());
}

TEST_CASE("an immovable interrupt is reported once, and retried when it may help") {
  Passed scene;
  scene.node.nail_interrupt(45);
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  scene.line().check_drift();
  scene.line().check_drift();
  CHECK(scene.count("unmanaged") == 1);
  CHECK_FALSE(scene.view().interrupts[0].managed);
  CHECK(scene.view().interrupts[0].problem.find("cannot be moved") != std::string::npos);
  CHECK(scene.sent(46) == "4-5");
  CHECK(scene.verifier().verify().ok());
  REQUIRE(scene.requests().reconcile("s1"));
  CHECK(scene.count("unmanaged") == 2);
}

TEST_CASE("a daemon that was killed at a write knows what the interrupt had before it") {
  Passed scene;
  scene.node.msi(kDevice, 47, msix(2), "6");
  scene.node.nail_interrupt(47);
  const std::string before = scene.sent(47);
  scene.line().check_drift();
  // As if that write had been done, and the daemon been killed before it could note it.
  scene.node.free_interrupt(kDevice, 47);
  scene.node.msi(kDevice, 47, msix(2), "2-3");
  scene.start();
  scene.line().adopt();
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.sent(47) == before);
}

TEST_CASE("what interrupts had is remembered while they cannot be read, also by the next daemon") {
  Passed scene;
  const std::string file = GENERATE("proc/irq/45/smp_affinity_list", "sys/kernel/irq/45/actions",
                                    "sys/kernel/iommu_groups/12/devices", "proc/100/fd/30");
  CAPTURE(file);
  const bool restarts = GENERATE(false, true);
  const auto restore = scene.node.make_unreadable(file);
  scene.line().check_drift();
  if (restarts) {
    scene.start();
    scene.line().adopt();
  } else {
    CHECK(scene.view().devices.size() == 1);
    CHECK(scene.view().interrupts.size() == 2);
  }
  const line::VerifyReport report = scene.verifier().verify();
  CHECK(report.verdict() == line::Verdict::kUnknown);
  CHECK_FALSE(scene.view().trouble.empty());
  restore();
  scene.line().check_drift();
  CHECK(scene.verifier().verify().ok());
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.sent(45) == "0-7");
  CHECK(scene.sent(46) == "0-7");
}

TEST_CASE("an interrupt that cannot be read during its release is restored later") {
  Passed scene;
  const auto restore = scene.node.make_unreadable("sys/kernel/irq/45/actions");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.sent(45) == "2-3");
  CHECK(scene.sent(46) == "0-7");
  restore();
  scene.line().check_drift();
  CHECK(scene.sent(45) == "0-7");
}

TEST_CASE("a number whose new handler is seen is forgotten although others cannot be read") {
  Passed scene;
  (void)scene.node.make_unreadable("sys/kernel/irq/46/actions");
  scene.node.interrupt(45, msix(7), "5");
  scene.line().check_drift();
  CHECK(scene.sent(45) == "2-3");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.sent(45) == "5");
}

TEST_CASE("an interrupt shared with another handler is left alone") {
  Passed scene;
  scene.node.write("sys/bus/pci/devices/0000:01:00.0/irq", "16\n");
  scene.node.interrupt(16, "ehci_hcd:usb1,vfio-intx(0000:01:00.0)", "0-7");
  scene.line().check_drift();
  CHECK(scene.sent(16) == "0-7");
  CHECK(scene.view().interrupts[0].problem == "shared with ehci_hcd:usb1, left alone");
}

TEST_CASE("a number reused by another device is not restored") {
  Passed scene;
  scene.node.free_interrupt(kDevice, 45);
  scene.node.interrupt(45, "nvme0q1", "3");
  REQUIRE(scene.requests().release("s1"));
  CHECK(scene.sent(45) == "3");
  CHECK(scene.sent(46) == "0-7");
}

TEST_CASE("observe mode reports planned interrupts, and writes nothing") {
  line::Options options = tests::at_home();
  options.observe = true;
  Passed scene(options);
  CHECK(scene.sent(45) == "0-7");
  CHECK(scene.view().interrupts[0].wanted == CpuSet{2, 3});
  CHECK(scene.line().check_drift().planned == 0);
}

TEST_CASE("vcpu_pinning = none restores interrupts") {
  Passed scene;
  line::Options options = tests::at_home();
  options.settings.vcpu_pinning = policy::plan::VcpuPinning::kNone;
  scene.line().configure(options);
  CHECK(scene.sent(45) == "0-7");
}

TEST_CASE("what the kernel refused for an interrupt does not hold for the next with its number") {
  Passed scene;
  scene.node.nail_interrupt(45);
  REQUIRE(scene.container("s1", "app", {4, 5}, true));
  REQUIRE_FALSE(scene.view().interrupts[0].managed);
  CHECK(scene.view().interrupts[0].problem.ends_with("smp_affinity_list: Permission denied"));
  scene.node.free_interrupt(kDevice, 45);
  scene.node.msi(kDevice, 45, msix(7), "0-7");
  scene.line().check_drift();
  CHECK(scene.sent(45) == "4-5");
}
