// SPDX-License-Identifier: Apache-2.0
// The VMMs that Kata starts, as /proc and debugfs show them, and what discovery makes of each.
#include "tests/discovery.hpp"
#include "policy/plan/plan.hpp"
#include "tests/catch.hpp"
#include "tests/unit/vmm/fixture.hpp"
#include "tests/without_rights.hpp"

using namespace ka;
using ka::tests::FakeNode;
using ka::tests::Roles;
using ka::tests::roles;
using ka::tests::roots_of;
using ka::tests::vcpus;

namespace {

constexpr int kVmm = 4000;
const std::string kQemu = "/opt/kata/bin/qemu-system-x86_64";

void qemu(const FakeNode& node) { node.process(kVmm, 1, "qemu-system-x86", kQemu); }

base::Result<vmm::VmmThreads> observe(const FakeNode& node,
                                      const vmm::MonitorFacts* monitor = nullptr,
                                      const std::string& cgroup = {}) {
  return tests::discover(roots_of(node), {.vmm = tests::process_id(kVmm), .cgroup = cgroup},
                         monitor);
}

vmm::MonitorFacts::Vcpu reported(int index, int apic_id, int tid) {
  return {.facts = {.index = index, .apic_id = apic_id, .socket = index}, .tid = tid};
}

}  // namespace

TEST_CASE("QEMU with thread names") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "qemu-system-x86");
  node.thread(kVmm, 4002, "IO mon_iothread");
  node.thread(kVmm, 4003, "IO io1");
  node.thread(kVmm, 4004, "CPU 0/KVM");
  node.thread(kVmm, 4005, "CPU 1/KVM");
  node.thread(kVmm, 4006, "vhost-4000");
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{4000, "emulator"},
                               {4001, "emulator"},
                               {4002, "emulator"},
                               {4003, "iothread io1"},
                               {4004, "vcpu 0"},
                               {4005, "vcpu 1"},
                               {4006, "vhost"}});
  CHECK(vcpus(*found) == "0:- 1:-");
  CHECK(found->vcpu_source == "thread-names");
  CHECK(found->conflicts.empty());
  CHECK(found->complete);
  CHECK(found->threads[4].key == policy::ThreadKey{4000, 4004, 104004});
}

TEST_CASE("QEMU without thread names, by debugfs: indices are the APIC ids") {
  const FakeNode node;
  qemu(node);
  for (int tid = 4001; tid <= 4004; ++tid) node.thread(kVmm, tid, "qemu-system-x86");
  node.kvm_vcpu("4000-12", 0, 4002);
  node.kvm_vcpu("4000-12", 8, 4001);
  node.kvm_vcpu("4000-12", 16, 4004);
  node.kvm_vcpu("4999-12", 0, 4003);  // somebody else's VM
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{4000, "emulator"},
                               {4001, "vcpu 8"},
                               {4002, "vcpu 0"},
                               {4003, "emulator"},
                               {4004, "vcpu 16"}});
  CHECK(vcpus(*found) == "0:0 8:8 16:16");
  CHECK(found->vcpu_source == "kvm-debugfs, index by APIC id");
}

TEST_CASE("what the daemon may not read is said from the first time on, and the rest is used") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "CPU 0/KVM");
  node.fd(kVmm, 3, "anon_inode:kvm-vm");
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  const auto fds = node.proc() / std::to_string(kVmm) / "fd";
  std::filesystem::permissions(node.proc().parent_path(), std::filesystem::perms(0755));
  std::filesystem::permissions(fds, std::filesystem::perms(0));
  for (int time = 0; time < 2; ++time) {
    const auto found = tests::without_rights([&] { return discovery.observe(nullptr); });
    REQUIRE(found);
    CHECK(found->trouble.find("Permission denied") != std::string::npos);
    CHECK(vcpus(*found) == "0:-");
  }
  std::filesystem::permissions(fds, std::filesystem::perms(0755));
  CHECK(discovery.observe(nullptr)->trouble.empty());
}

TEST_CASE("processes beyond a limit are said, and new threads are seen all the same") {
  const FakeNode node;
  node.process(3001, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  node.process(kVmm, 3001, "qemu-system-x86", kQemu);
  node.thread(kVmm, 4001, "CPU 0/KVM", 3001);
  node.children(3001, "4000 ");
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  REQUIRE(discovery.observe(nullptr)->trouble.empty());
  std::string children = "4000 ";
  for (int pid = 5000; pid < 5065; ++pid) {
    node.process(pid, 3001, "virtiofsd", "/opt/kata/libexec/virtiofsd");
    children += std::to_string(pid) + ' ';
  }
  node.children(3001, children);
  node.thread(kVmm, 4002, "CPU 1/KVM", 3001);
  const auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:- 1:-");
  CHECK(found->trouble == "more than 64 virtiofsd processes; the rest is not read");
}

TEST_CASE("a vCPU plugged below others leaves their indices unchanged") {
  const FakeNode node;
  qemu(node);
  for (int tid = 4001; tid <= 4003; ++tid) node.thread(kVmm, tid, "qemu-system-x86");
  node.kvm_vcpu("4000-12", 0, 4001);
  node.kvm_vcpu("4000-12", 4, 4002);
  node.kvm_vcpu("4000-12", 3, 4003);
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  CHECK(roles(*discovery.observe(nullptr))[4003] == "vcpu 3");
  node.thread(kVmm, 4004, "qemu-system-x86");
  node.kvm_vcpu("4000-12", 2, 4004);
  const auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(roles(*found)[4001] == "vcpu 0");
  CHECK(roles(*found)[4002] == "vcpu 4");
  CHECK(roles(*found)[4003] == "vcpu 3");
  CHECK(roles(*found)[4004] == "vcpu 2");
}

TEST_CASE("debugfs and names together give both numbers") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "CPU 0/KVM");
  node.thread(kVmm, 4002, "CPU 2/KVM");
  node.kvm_vcpu("4000-12", 0, 4001);
  node.kvm_vcpu("4000-12", 4, 4002);
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0 2:4");
  CHECK(found->vcpu_source == "kvm-debugfs, index by thread-names");
  CHECK(found->conflicts.empty());
}

TEST_CASE("an unplugged vCPU, which QEMU keeps, has no thread") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "qemu-system-x86");
  node.thread(kVmm, 4003, "qemu-system-x86");
  node.kvm_vcpu("4000-12", 0, 4001);
  node.kvm_vcpu("4000-12", 1, 4002);
  node.kvm_vcpu("4000-12", 2, 4003);
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0 2:2");
  CHECK(found->conflicts.empty());
  CHECK(found->complete);
}

TEST_CASE("a vCPU that never ran is searched again, and found once it ran") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "qemu-system-x86");
  node.thread(kVmm, 4002, "qemu-system-x86");
  node.kvm_vcpu("4000-12", 0, 4001);
  node.kvm_vcpu("4000-12", 1, 0);
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0");
  CHECK_FALSE(found->complete);
  node.kvm_vcpu("4000-12", 1, 4002);
  found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0 1:1");
  CHECK(found->complete);
}

TEST_CASE("a plugged vCPU's thread seen before KVM's vCPU is examined again") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "qemu-system-x86");
  node.kvm_vcpu("4000-12", 0, 4001);
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  CHECK(discovery.observe(nullptr)->complete);
  node.thread(kVmm, 4002, "qemu-system-x86");
  CHECK_FALSE(discovery.observe(nullptr)->complete);
  node.kvm_vcpu("4000-12", 1, 4002);
  const auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0 1:1");
  CHECK(found->complete);
}

TEST_CASE("a new thread without a claim becomes an emulator thread at the second observation") {
  const FakeNode node;
  qemu(node);
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  CHECK(discovery.observe(nullptr)->complete);
  node.thread(kVmm, 4002, "worker");
  CHECK_FALSE(discovery.observe(nullptr)->complete);
  CHECK(discovery.observe(nullptr)->complete);
}

TEST_CASE("a VMM with several VMs has the vCPUs of all") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "x");
  node.thread(kVmm, 4002, "x");
  node.kvm_vcpu("4000-9", 0, 4001);
  node.kvm_vcpu("4000-12", 1, 4002);
  CHECK(vcpus(*observe(node)) == "0:0 1:1");
}

TEST_CASE("without debugfs and names open vCPUs are identified while in KVM_RUN") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "qemu-system-x86");
  node.thread(kVmm, 4002, "qemu-system-x86");
  node.fd(kVmm, 11, "anon_inode:kvm-vm");
  node.fd(kVmm, 20, "anon_inode:kvm-vcpu:0");
  node.fd(kVmm, 21, "anon_inode:kvm-vcpu:2");
  node.in_kvm_run(kVmm, 4001, 21);
  node.syscall(kVmm, 4002, "running\n");
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(vcpus(*found) == "2:2");
  CHECK(found->vcpu_source == "kvm-fd, index by APIC id");
  CHECK_FALSE(found->complete);
  node.in_kvm_run(kVmm, 4002, 20);
  found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0 2:2");
  CHECK(roles(*found)[4001] == "vcpu 2");
  CHECK(found->complete);
}

TEST_CASE("a kernel thread that holds a vCPU's registers is not taken for it") {
  const FakeNode node;
  qemu(node);
  node.fd(kVmm, 20, "anon_inode:kvm-vcpu:0");
  node.thread(kVmm, 4001, "CPU 0/KVM");
  node.thread(kVmm, 4002, "kvm-nx-lpage-re");
  node.thread(kVmm, 4003, "vhost-4000");
  for (const int tid : {4001, 4002, 4003}) node.in_kvm_run(kVmm, tid, 20);
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0");
  CHECK(found->conflicts.empty());
}

TEST_CASE("QEMU under TCG with neither names nor a monitor: no vCPU can be identified") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "qemu-system-x86");
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(found->vcpus.empty());
  CHECK(found->vcpu_source.empty());
  CHECK(roles(*found) == Roles{{4000, "emulator"}, {4001, "emulator"}});
}

TEST_CASE("QEMU under TCG, with a monitor") {
  const FakeNode node;
  qemu(node);
  for (int tid = 4001; tid <= 4003; ++tid) node.thread(kVmm, tid, "qemu-system-x86");
  const vmm::MonitorFacts monitor{.source = "qmp",
                                  .vcpus = {reported(0, 0, 4002), reported(1, 4, 4001)},
                                  .iothreads = {{.id = "indep_iothread_0", .tid = 4003}}};
  const auto found = observe(node, &monitor);
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{4000, "emulator"},
                               {4001, "vcpu 1"},
                               {4002, "vcpu 0"},
                               {4003, "iothread indep_iothread_0"}});
  CHECK(vcpus(*found) == "0:0 1:4");
  CHECK(found->vcpus[1].socket == 1);
  CHECK(found->vcpu_source == "qmp");
}

TEST_CASE("Cloud Hypervisor: the VM belongs to the thread that created it") {
  const FakeNode node;
  node.process(kVmm, 1, "cloud-hyperviso", "/opt/kata/bin/cloud-hypervisor");
  node.thread(kVmm, 4001, "vmm");
  node.thread(kVmm, 4002, "_net1_qp0");
  node.thread(kVmm, 4003, "vcpu0");
  node.thread(kVmm, 4004, "vcpu1");
  node.kvm_vcpu("4001-8", 0, 4003);
  node.kvm_vcpu("4001-8", 1, 4004);
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(vcpus(*found) == "0:0 1:1");
  CHECK(roles(*found)[4002] == "iothread net1_qp0");
}

TEST_CASE("Firecracker and OpenVMM, by thread names") {
  const FakeNode node;
  node.process(kVmm, 1, "firecracker", "/firecracker");
  node.thread(kVmm, 4001, "fc_api");
  node.thread(kVmm, 4002, "fc_vcpu 0");
  node.thread(kVmm, 4003, "vp-1");
  CHECK(roles(*observe(node)) ==
        Roles{{4000, "emulator"}, {4001, "emulator"}, {4002, "vcpu 0"}, {4003, "vcpu 1"}});
}

TEST_CASE("Dragonball runs in the shim, and Kata names one of its threads") {
  const FakeNode node;
  node.process(3990, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  node.thread(3990, 3995, "tokio-runtime-w");
  node.thread(3990, kVmm, "vmm_master");
  node.thread(3990, 4001, "db_vcpu0");
  node.kvm_vcpu("4000-30", 0, 4001);
  const auto vmm = vmm::identify(roots_of(node), kVmm);
  REQUIRE(vmm);
  const auto found = tests::discover(roots_of(node), {.vmm = *vmm}, nullptr);
  REQUIRE(found);
  CHECK(found->vmm_pid == 3990);
  CHECK(roles(*found) == Roles{{4000, "emulator"}, {4001, "vcpu 0"}});
  CHECK(found->threads[1].key.pid == 3990);
}

TEST_CASE("the shim and virtiofsd are found by ancestry, helpers by the cgroup") {
  const FakeNode node;
  node.process(3000, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-affinity-v2");
  node.process(3001, 3000, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  node.thread(3001, 3002, "containerd-shim", 3000);
  node.process(3100, 3001, "virtiofsd", "/opt/kata/libexec/virtiofsd");
  node.process(3101, 3100, "virtiofsd", "/opt/kata/libexec/virtiofsd");
  node.process(3102, 3001, "sh", "/bin/sh");
  node.children(3001, "3100 3102 4000 ");
  node.children(3100, "3101 ");
  node.process(kVmm, 3001, "qemu-system-x86", kQemu);
  node.process(3200, 1, "passt", "/usr/bin/passt");
  node.process(3300, 1, "virtiofsd", "/usr/lib/virtiofsd");
  const std::string cgroup = node.cgroup_procs("kata_s", "4000\n3200\n");
  node.cgroup_procs("kata_s/below", "3300\n");
  const auto found = observe(node, nullptr, cgroup);
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{3000, "shim"},
                               {3001, "shim"},
                               {3002, "shim"},
                               {3100, "virtiofsd"},
                               {3101, "virtiofsd"},
                               {3200, "helper"},
                               {3300, "virtiofsd"},
                               {4000, "emulator"}});
}

TEST_CASE("runc's shim above a VMM is not the sandbox's") {
  const FakeNode node;
  node.process(3000, 1, "containerd-shim", "/usr/bin/containerd-shim-runc-v2");
  node.process(kVmm, 3000, "qemu-system-x86", kQemu);
  CHECK(roles(*observe(node)) == Roles{{4000, "emulator"}});
}

TEST_CASE("processes in the root cgroup are not helpers") {
  const FakeNode node;
  qemu(node);
  node.process(3200, 1, "sshd", "/usr/sbin/sshd");
  const std::string below = node.cgroup_procs("x", "");
  node.cgroup_procs(".", "4000\n3200\n");
  CHECK(roles(*observe(node, nullptr, node.cgroup().string())) == Roles{{4000, "emulator"}});
}

TEST_CASE("vhost workers of older kernels are separate kernel threads") {
  const FakeNode node;
  qemu(node);
  node.process(2, 0, "kthreadd", "");
  node.process(5050, 2, "vhost-4000", "");
  node.process(300, 2, "vhost-4000", "");  // older than the VMM: of one that had its number before
  node.process(5051, 2, "vhost-4999", "");
  node.process(5052, 1, "vhost-4000", "/tmp/pretender");
  SECTION("listed as kthreadd's children") { node.children(2, "300 5050 5051 "); }
  SECTION("on a kernel without children lists") {}
  CHECK(roles(*observe(node)) == Roles{{4000, "emulator"}});  // no vhost device is open
  node.fd(kVmm, 30, "/dev/vhost-net");
  CHECK(roles(*observe(node)) == Roles{{4000, "emulator"}, {5050, "vhost"}});
}

TEST_CASE("exiting threads are left out") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4001, "CPU 0/KVM");
  node.thread(kVmm, 4002, "CPU 1/KVM", 1, 0, 'Z');
  std::filesystem::create_directories(node.proc() / "4000/task/4003");  // between open and read
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{4000, "emulator"}, {4001, "vcpu 0"}});
}

TEST_CASE("a VMM that is gone, a zombie, or a reused pid") {
  const FakeNode node;
  CHECK(observe(node).error().code == base::ErrorCode::kGone);
  qemu(node);
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  REQUIRE(discovery.observe(nullptr));
  node.thread(kVmm, kVmm, "bash", 1, 777);
  CHECK(discovery.observe(nullptr).error().code == base::ErrorCode::kGone);
  node.thread(kVmm, kVmm, "qemu-system-x86", 1, 0, 'Z');
  CHECK(discovery.observe(nullptr).error().code == base::ErrorCode::kGone);
}

TEST_CASE("changes between two observations are found") {
  const FakeNode node;
  qemu(node);
  node.process(3200, 1, "passt", "/usr/bin/passt");
  node.thread(kVmm, 4001, "CPU 0/KVM");
  const std::string cgroup = node.cgroup_procs("kata_s", "4000\n");
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm), .cgroup = cgroup});
  const auto before = discovery.observe(nullptr);
  REQUIRE(before);
  CHECK(*discovery.observe(nullptr) == *before);
  SECTION("a thread starts") {
    node.thread(kVmm, 4002, "CPU 1/KVM");
    CHECK(vcpus(*discovery.observe(nullptr)) == "0:- 1:-");
  }
  SECTION("a thread changes its name") {
    node.thread(kVmm, 4001, "IO io1");
    CHECK(roles(*discovery.observe(nullptr))[4001] == "iothread io1");
  }
  SECTION("a thread exits and its tid is reused") {
    node.thread(kVmm, 4001, "CPU 0/KVM", 1, 5);
    CHECK(discovery.observe(nullptr)->threads[1].key.start_time == 5);
  }
  SECTION("a process joins the cgroup") {
    node.cgroup_procs("kata_s", "4000\n3200\n");
    CHECK(roles(*discovery.observe(nullptr))[3200] == "helper");
  }
  SECTION("the monitor responds") {
    const vmm::MonitorFacts monitor{
        .source = "qmp", .vcpus = {reported(0, 6, 4001)}, .iothreads = {}};
    CHECK(vcpus(*discovery.observe(&monitor)) == "0:6");
    CHECK(vcpus(*discovery.observe(nullptr)) == "0:-");
  }
}

TEST_CASE("a device plugged on an old kernel is found after forget") {
  const FakeNode node;
  qemu(node);
  tests::Discovery discovery(roots_of(node), {.vmm = tests::process_id(kVmm)});
  CHECK(roles(*discovery.observe(nullptr)).size() == 1);
  node.fd(kVmm, 30, "/dev/vhost-vsock");
  node.process(2, 0, "kthreadd", "");
  node.process(5050, 2, "vhost-4000", "");
  node.children(2, "5050 ");
  CHECK(roles(*discovery.observe(nullptr)).size() == 1);
  discovery.forget();
  CHECK(roles(*discovery.observe(nullptr))[5050] == "vhost");
}

TEST_CASE("a libvirt domain is the VMM with its UUID, of several the one that libvirt started") {
  constexpr const char* kUuid = "da70691c-0a38-4fd5-ace3-8e30f380565d";
  const FakeNode node;
  const tests::TempDir run;
  auto roots = roots_of(node);
  roots.run = run.path();
  qemu(node);
  CHECK(vmm::find_domain(roots, "vm1", kUuid).error().code == base::ErrorCode::kNotFound);
  node.arguments(kVmm, {kQemu, "-name", "guest=vm1", "-uuid", kUuid});
  node.process(5000, 1, "sh", "/bin/dash");
  node.arguments(5000, {"sh", "-c", "-uuid", kUuid});
  CHECK(vmm::find_domain(roots, "vm1", kUuid) == tests::process_id(kVmm));
  node.process(4100, 1, "qemu-system-x86", kQemu);
  node.arguments(4100, {kQemu, "-uuid", kUuid});
  CHECK(vmm::find_domain(roots, "vm1", kUuid).error().code == base::ErrorCode::kConflict);
  std::filesystem::create_directories(run.path() / "libvirt/qemu");
  run.write("libvirt/qemu/vm1.pid", "4100\n");
  CHECK(vmm::find_domain(roots, "vm1", kUuid) == tests::process_id(4100));
  run.write("libvirt/qemu/vm1.pid", "5000\n");
  CHECK(vmm::find_domain(roots, "vm1", kUuid).error().code == base::ErrorCode::kConflict);
}

TEST_CASE("KVM's timer is a kernel thread that goes with vCPU 0") {
  const FakeNode node;
  qemu(node);
  node.thread(kVmm, 4004, "CPU 0/KVM");
  node.fd(kVmm, 10, "anon_inode:kvm-vm");
  node.fd(kVmm, 11, "anon_inode:kvm-vcpu:0");
  node.process(2, 0, "kthreadd", "");
  node.process(5000, 2, "kvm-pit/4000", "");
  node.process(5001, 2, "kvm-pit/400", "");
  node.process(5002, 1, "kvm-pit/4000", "/bin/liar");
  node.children(2, "5000 5001 ");
  const auto found = observe(node);
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{4000, "emulator"}, {4004, "vcpu 0"}, {5000, "kvm-pit"}});
  policy::plan::SandboxPlan plan;
  plan.vcpus = {{.index = 0, .cpus = {5}, .role = policy::plan::VcpuRole::kDedicated}};
  CHECK(*plan.cpus_for(found->threads.back()) == policy::CpuSet{5});
}
