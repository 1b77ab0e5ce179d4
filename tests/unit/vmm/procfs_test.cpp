// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/unit/vmm/fixture.hpp"
#include "vmm/kvm/debugfs.hpp"
#include "vmm/procfs/kvm_fds.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/thread_list.hpp"
#include "vmm/procfs/thread_names.hpp"
#include "vmm/procfs/vhost_user.hpp"

using namespace ka;
using ka::policy::Role;
using ka::tests::FakeNode;
using ka::tests::roots_of;

TEST_CASE("known thread names") {
  struct Row {
    std::string comm;
    Role role;
    int number;
    std::string iothread;
  };
  for (const Row& row : std::vector<Row>{
           {"CPU 0/KVM", Role::kVcpu, 0, ""},
           {"CPU 12/TCG", Role::kVcpu, 12, ""},
           {"vcpu3", Role::kVcpu, 3, ""},
           {"fc_vcpu 7", Role::kVcpu, 7, ""},
           {"db_vcpu8191", Role::kVcpu, 8191, ""},
           {"vp-2", Role::kVcpu, 2, ""},
           {"vhost-4194304", Role::kVhost, 4194304, ""},
           {"IO io1", Role::kIothread, -1, "io1"},
           {"IO a b", Role::kIothread, -1, "a b"},
       }) {
    CAPTURE(row.comm);
    const auto meaning = vmm::read_thread_name(row.comm);
    REQUIRE(meaning);
    CHECK(*meaning == vmm::NameMeaning{row.role, row.number, row.iothread});
  }
}

TEST_CASE("unknown thread names") {
  for (const std::string comm : {"",           "CPU /KVM",    "CPU x/KVM",       "CPU 0/HVF",
                                 "CPU -1/KVM", "CPU 01/KVM",  "CPU 0/KVM ",      "vcpu",
                                 "vcpu0x",     "vcpu 0",      "vcpu8192",        "vcpu99999999999",
                                 "fc_vcpu",    "vp-",         "vhost-",          "vhost-x",
                                 "vhost-net",  "IO ",         "IO mon_iothread", "IOx",
                                 "worker",     "ALL CPUs/TCG"}) {
    CAPTURE(comm);
    CHECK_FALSE(vmm::read_thread_name(comm));
  }
}

TEST_CASE("links of open files") {
  vmm::OpenFds fds;
  int number = 3;
  for (const std::string target :
       {"anon_inode:kvm-vm", "anon_inode:kvm-vcpu:12", "anon_inode:kvm-vcpu:", "/dev/vhost-net",
        "anon_inode:kvm-vcpu:-1", "anon_inode:kvm-vcpu:1x", "/dev/vhost-vsock", "/dev/kvm",
        "/dev/vhost-vdpa-0", "socket:[1]", "anon_inode:kvm-vm (deleted)"}) {
    vmm::add_fd(fds, number++, target);
  }
  CHECK(fds.kvm_vms == 1);
  CHECK(fds.kvm_vcpus == std::map<int, int>{{4, 12}});
  CHECK(fds.vhost_devices == 2);
}

TEST_CASE("a thread in KVM_RUN is identified by its system call") {
  CHECK(vmm::kvm_run_fd("16 0x1b 0xae80 0x0 0x0 0x0 0x0 0x7ffc 0x7f00\n") == 0x1b);
  CHECK(vmm::kvm_run_fd("29 0x5 0xae80 0x0") == 5);  // arm64
  for (const std::string line :
       {"running\n", "-1 0x7ffc 0x7f00\n", "16 0x1b 0xae01 0x0", "16 27 0xae80", "16 0x1b",
        "16 0x1bffffffff 0xae80 0x0", "16 0x 0xae80", "", "\n", "x 0x1b 0xae80"}) {
    CAPTURE(line);
    CHECK_FALSE(vmm::kvm_run_fd(line));
  }
}

TEST_CASE("the test's own process, read from the real /proc") {
  base::ThreadStats stats("/proc");
  const auto process = vmm::read_process(stats, ::getpid());
  REQUIRE(process);
  CHECK(process->ppid == ::getppid());
  CHECK(process->threads.front().key.tid == ::getpid());
  CHECK(process->start_time == process->threads.front().key.start_time);
  CHECK(*vmm::thread_group("/proc", ::getpid()) == ::getpid());
  CHECK_FALSE(vmm::program_name("/proc", ::getpid()).empty());
  CHECK(vmm::read_process(stats, 0x3fffffff).error().code == base::ErrorCode::kGone);
}

TEST_CASE("a VMM is recognized by its VM, or by a trusted name") {
  using enum vmm::Word;
  const FakeNode node;
  const vmm::Roots roots = roots_of(node);
  const auto is_vmm = [&](int pid, vmm::Word word) {
    return vmm::examine(roots, pid, word)->is_vmm;
  };
  CHECK_FALSE(vmm::examine({}, ::getpid(), kOperator)->is_vmm);
  CHECK(vmm::examine(roots, 77, kOperator).error().code == base::ErrorCode::kGone);
  node.process(77, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64 (deleted)");
  CHECK(is_vmm(77, kOperator));
  CHECK(is_vmm(77, kRuntime));
  CHECK_FALSE(is_vmm(77, kTenant));
  node.fd(77, 5, "anon_inode:kvm-vm");
  CHECK(is_vmm(77, kTenant));
  node.process(78, 1, "bash", "/bin/bash");
  node.fd(78, 5, "/dev/kvm");
  CHECK_FALSE(is_vmm(78, kOperator));
}

TEST_CASE("a process whose first thread has ended before others may be a VMM") {
  const FakeNode node;
  node.process(77, 1, "qemu-system-x86", "");
  node.thread(77, 78, "CPU 0/TCG");
  const auto examine = [&] { return vmm::examine(roots_of(node), 77, vmm::Word::kRuntime); };
  CHECK_FALSE(examine()->is_vmm);
  node.thread(77, 77, "qemu-system-x86", 1, 0, 'Z');
  CHECK(examine().error().code == base::ErrorCode::kTransient);
  node.thread(77, 78, "CPU 0/TCG", 1, 0, 'Z');
  CHECK_FALSE(examine()->is_vmm);
}

TEST_CASE("a container's program is no VMM by its name, nor by a fake shim") {
  using enum vmm::Word;
  const FakeNode node;
  const vmm::Roots roots = roots_of(node);
  const auto in_namespace = [&](const std::string& process, const std::string& number) {
    std::filesystem::create_directories(node.proc() / process / "ns");
    std::filesystem::create_symlink("pid:[" + number + ']', node.proc() / process / "ns/pid");
  };
  in_namespace("self", "1");
  node.process(50, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  node.process(51, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  in_namespace("50", "1");
  in_namespace("51", "2");
  node.process(60, 50, "firecracker-x", "/firecracker-x");
  node.process(61, 51, "firecracker-x", "/firecracker-x");
  node.process(62, 50, "firecracker-x", "/firecracker-x");
  in_namespace("60", "1");
  in_namespace("61", "1");
  in_namespace("62", "2");
  CHECK(vmm::examine(roots, 60, kTenant)->is_vmm);
  CHECK_FALSE(vmm::examine(roots, 61, kTenant)->is_vmm);
  CHECK_FALSE(vmm::examine(roots, 62, kTenant)->is_vmm);
  CHECK(vmm::examine(roots, 61, kRuntime)->is_vmm);
  CHECK_FALSE(vmm::examine(roots, 62, kRuntime)->is_vmm);
  CHECK(vmm::examine(roots, 62, kOperator)->is_vmm);
}

TEST_CASE("a process of which cannot be seen where it runs is no verdict") {
  const FakeNode node;
  const vmm::Roots roots = roots_of(node);
  const auto in_namespace = [&](const std::string& process) {
    std::filesystem::create_directories(node.proc() / process / "ns");
    std::filesystem::create_symlink("pid:[1]", node.proc() / process / "ns/pid");
  };
  in_namespace("self");
  node.process(77, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  const auto unreadable = node.proc() / "77/ns";
  std::filesystem::create_symlink(unreadable, unreadable);
  for (const auto word : {vmm::Word::kRuntime, vmm::Word::kTenant}) {
    const auto examined = vmm::examine(roots, 77, word);
    REQUIRE_FALSE(examined);
    CHECK_FALSE(is_gone(examined));
  }
  CHECK(vmm::is_contained(roots, 77));
  CHECK(vmm::examine(roots, 77, vmm::Word::kOperator)->is_vmm);
  node.fd(77, 5, "anon_inode:kvm-vm");
  CHECK(vmm::examine(roots, 77, vmm::Word::kRuntime)->is_vmm);
  std::filesystem::remove(unreadable);
  in_namespace("77");
  CHECK(vmm::examine(roots, 77, vmm::Word::kRuntime)->is_vmm);
}

TEST_CASE("any thread identifies its process, and has its own arguments") {
  const FakeNode node;
  const vmm::Roots roots = roots_of(node);
  node.process(79, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  node.thread(79, 80, "vmm_master");
  CHECK_FALSE(vmm::examine(roots, 80, vmm::Word::kRuntime)->is_vmm);
  node.fd(79, 5, "anon_inode:kvm-vm");
  CHECK(vmm::examine(roots, 80, vmm::Word::kTenant)->is_vmm);
  CHECK(vmm::examine(roots, 80, vmm::Word::kTenant)->id == tests::process_id(79));
  CHECK(vmm::arguments_of(roots, tests::process_id(79))->size() == 1);
  node.thread(79, 79, "containerd-shim", 1, 7);
  CHECK(vmm::arguments_of(roots, tests::process_id(79)).error().code == base::ErrorCode::kGone);
}

TEST_CASE("debugfs: unexpected names and contents are skipped") {
  base::Trouble ignored;
  const FakeNode node;
  const auto ours = [](int tid) { return tid == 9; };
  CHECK(vmm::read_kvm_vcpus(node.debugfs(), ours, ignored).empty());
  node.kvm_vcpu("9-1", 10, 30);
  node.kvm_vcpu("9-1", 9, 29);
  node.kvm_vcpu("9-x", 1, 31);
  node.kvm_vcpu("9", 2, 32);
  node.kvm_vcpu("99-1", 3, 33);
  std::filesystem::create_directories(node.debugfs() / "kvm/9-1/vcpu4x");
  std::filesystem::create_directories(node.debugfs() / "kvm/9-1/vcpu5");  // older kernel: no pid
  CHECK(vmm::read_kvm_vcpus(node.debugfs(), ours, ignored) ==
        std::vector<vmm::KvmVcpu>{{9, 29}, {10, 30}});
}

TEST_CASE("a VM's memory is what it shares writable") {
  const auto files = vmm::shared_files(
      "7f10-7f20 rw-s 00000000 00:01 4591                       /memfd:ram (deleted)\n"
      "7f20-7f30 rw-s 10000000 00:01 4591                       /memfd:ram (deleted)\n"
      "7f30-7f40 rw-s 00000000 00:31 12                         /dev/hugepages/vm1\n"
      "7f40-7f50 rw-p 00000000 00:01 4592                       /memfd:own (deleted)\n"
      "7f50-7f60 r--s 00000000 08:01 77                         /usr/share/mime/mime.cache\n"
      "7f60-7f70 rw-s 00000000 00:0e 1034                       anon_inode:kvm-vcpu:0\n"
      "7f70-7f80 rw-s 00000000 00:00 0 \n"
      "7f80-7f90 rw-p 00000000 00:00 0                          [stack]\n"
      "no line of the kernel's");
  CHECK(files == std::set<std::string>{"00:01 4591", "00:31 12"});
}
