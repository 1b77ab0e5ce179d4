// SPDX-License-Identifier: Apache-2.0
// Threads that the kernel makes for a VMM, and those that a VMM makes only at times.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/unit/vmm/fixture.hpp"

using namespace ka;
using ka::tests::FakeNode;
using ka::tests::Roles;
using ka::tests::roles;
using ka::tests::roots_of;
using ka::tests::vcpus;

namespace {

constexpr int kVmm = 4000;

void qemu(const FakeNode& node) {
  node.process(kVmm, 1, "qemu-system-x86", "/opt/kata/bin/qemu-system-x86_64");
}

base::Result<vmm::VmmThreads> observe(const FakeNode& node, const std::string& cgroup = {}) {
  return tests::discover(roots_of(node), {.vmm = tests::process_id(kVmm), .cgroup = cgroup});
}

}  // namespace

TEST_CASE("an io_uring worker goes with its iothread") {
  const FakeNode node;
  qemu(node);
  node.fd(kVmm, 20, "anon_inode:kvm-vcpu:0");
  node.thread(kVmm, 4001, "CPU 0/KVM");
  node.thread(kVmm, 4002, "IO io1");
  node.thread(kVmm, 4003, "iou-wrk-4002");
  node.thread(kVmm, 4004, "iou-sqp-4002");
  node.thread(kVmm, 4005, "iou-wrk-4000");
  node.bound_thread(kVmm, 4006, "iou-wrk-4001");
  for (const int tid : {4001, 4006}) node.in_kvm_run(kVmm, tid, 20);
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0");
  CHECK(found->conflicts.empty());
  CHECK(roles(*found) == Roles{{4000, "emulator"},
                               {4001, "vcpu 0"},
                               {4002, "iothread io1"},
                               {4003, "iothread io1"},
                               {4004, "iothread io1"},
                               {4005, "emulator"},
                               {4006, "emulator"}});
  for (const auto& thread : found->threads) CHECK(thread.movable == (thread.key.tid != 4006));
}

TEST_CASE("QEMU's migration and snapshot threads are emulator threads") {
  const FakeNode node;
  qemu(node);
  const char* names[] = {"multifdsend_0", "mig/src/send_1", "mig/dst/recv_0", "bg_snapshot"};
  Roles expected{{4000, "emulator"}};
  int tid = kVmm;
  for (const char* name : names) {
    node.thread(kVmm, ++tid, name);
    expected[tid] = "emulator";
  }
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(roles(*found) == expected);
  CHECK(found->unknown.empty());
}

TEST_CASE("an unknown thread of the VMM and an unknown helper are named, each name once") {
  const FakeNode node;
  qemu(node);
  node.fd(kVmm, 20, "anon_inode:kvm-vcpu:0");
  node.thread(kVmm, 4001, "CPU 0/KVM");
  const char* known[] = {
      "qemu-system-x86", "call_rcu",     "worker",       "IO mon_iothread", "IO io1",
      "vhost-4000",      "iou-wrk-4001", "iou-sqp-4001", "kvm-nx-lpage-re", "multifdsend_0",
      "bg_snapshot",     "http-server",  "_rng",         "signal_handler"};
  int tid = 4001;
  for (const char* name : known) node.thread(kVmm, ++tid, name);
  node.process(3100, 1, "passt.avx2", "/usr/bin/passt.avx2");
  node.process(3200, 1, "newcomer", "/usr/bin/newcomer");
  node.thread(3200, 3201, "its-worker");
  node.thread(kVmm, 4050, "foo");
  node.thread(kVmm, 4051, "foo");
  const auto found = observe(node, node.cgroup_procs("kata_s", "4000\n3100\n3200\n"));
  REQUIRE(found);
  CHECK(found->unknown ==
        std::vector<std::string>{
            "process 3200 \"newcomer\" is unknown, and placed as helper: report it as "
            "docs/understand/vmms.md (Unknown threads) says",
            "thread 4050 \"foo\" is unknown, and placed as emulator: report it as "
            "docs/understand/vmms.md (Unknown threads) says"});
}

TEST_CASE("a VMM with any number of unknown names is described by the first of them") {
  const FakeNode node;
  qemu(node);
  for (int i = 0; i < 20; ++i) node.thread(kVmm, 4001 + i, "x" + std::to_string(i));
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(found->unknown.size() == 8);
}

TEST_CASE("KVM's recovery of huge pages is a helper where it is a kernel thread of its own") {
  const FakeNode node;
  qemu(node);
  node.process(2, 0, "kthreadd", "");
  node.fd(kVmm, 20, "anon_inode:kvm-vcpu:0");
  node.thread(kVmm, 4001, "CPU 0/KVM");
  node.process(5000, 2, "kvm-nx-lpage-recovery-4000", "");
  node.process(5001, 2, "kvm-nx-lpage-recovery-400", "");
  node.process(5002, 1, "kvm-nx-lpage-recovery-4000", "/bin/liar");
  node.children(2, "5000 5001");
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{4000, "emulator"}, {4001, "vcpu 0"}, {5000, "helper"}});
  CHECK(found->unknown.empty());
}

TEST_CASE("KVM's recovery of huge pages is known by a name that the kernel has cut") {
  const FakeNode node;
  qemu(node);
  node.process(2, 0, "kthreadd", "");
  node.process(5000, 2, "kvm-nx-lpage-re", "");
  const auto found = observe(node, node.cgroup_procs("kata_s", "4000\n5000\n"));
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{4000, "emulator"}, {5000, "helper"}});
}

TEST_CASE("a timer that QEMU creates after its vCPUs is found once its monitor answers") {
  const FakeNode node;
  qemu(node);
  node.process(2, 0, "kthreadd", "");
  node.fd(kVmm, 20, "anon_inode:kvm-vcpu:0");
  node.thread(kVmm, 4001, "CPU 0/KVM");
  node.children(2, "");
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  // Its first threads come and go meanwhile: the searches that these cause are too early.
  for (int tid = 4010; tid < 4020; ++tid) {
    node.thread(kVmm, tid, "worker");
    REQUIRE(discovery.observe(nullptr));
  }
  node.process(5000, 2, "kvm-pit/4000", "");
  node.children(2, "5000");
  const vmm::MonitorFacts monitor{.source = "qmp", .vcpus = {}, .iothreads = {}, .boot = {}};
  const auto found = discovery.observe(&monitor);
  REQUIRE(found);
  CHECK(roles(*found).at(5000) == "kvm-pit");
}

TEST_CASE("a timer that was missed is found when everything is read anew") {
  const FakeNode node;
  qemu(node);
  node.process(2, 0, "kthreadd", "");
  node.fd(kVmm, 20, "anon_inode:kvm-vcpu:0");
  node.thread(kVmm, 4001, "CPU 0/KVM");
  node.children(2, "");
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  REQUIRE(discovery.observe(nullptr));
  node.process(5000, 2, "kvm-pit/4000", "");
  node.children(2, "5000");
  REQUIRE(discovery.observe(nullptr));
  discovery.forget();
  const auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(roles(*found).at(5000) == "kvm-pit");
}

TEST_CASE("network and TPM back-ends in the sandbox's cgroup are helpers") {
  const FakeNode node;
  qemu(node);
  node.process(3100, 1, "passt", "/usr/bin/passt");
  node.process(3200, 1, "slirp4netns", "/usr/bin/slirp4netns");
  node.process(3300, 1, "swtpm", "/usr/bin/swtpm");
  const auto found = observe(node, node.cgroup_procs("kata_s", "4000\n3100\n3200\n3300\n"));
  REQUIRE(found);
  CHECK(roles(*found) ==
        Roles{{4000, "emulator"}, {3100, "helper"}, {3200, "helper"}, {3300, "helper"}});
}
