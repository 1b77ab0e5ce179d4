// SPDX-License-Identifier: Apache-2.0
// Any program that has a KVM VM is a VMM: a real VM of a program of our own, whose threads have no
// names, found by KVM's debugfs and by its open files.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <thread>

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/temp_dir.hpp"
#include "vmm/threads.hpp"

using namespace ka;

namespace {

/// The program, and the thread of each of its vCPUs as it tells them itself.
class TinyVm {
 public:
  TinyVm() {
    int pipe[2] = {-1, -1};
    REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(pipe[1], STDOUT_FILENO);
      ::execl(KA_TINY_VM, "tiny_vm", nullptr);
      ::_exit(127);
    }
    ::close(pipe[1]);
    std::FILE* lines = ::fdopen(pipe[0], "r");
    int id = 0, tid = 0;
    while (vcpus_.size() < 3 && std::fscanf(lines, " vcpu %d %d", &id, &tid) == 2) vcpus_[id] = tid;
    std::fclose(lines);
  }
  TinyVm(const TinyVm&) = delete;
  TinyVm& operator=(const TinyVm&) = delete;
  ~TinyVm() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  int pid() const { return pid_; }
  bool runs() const { return vcpus_.size() == 3; }
  const std::map<int, int>& vcpus() const { return vcpus_; }

 private:
  int pid_ = -1;
  std::map<int, int> vcpus_;
};

/// The debugfs of this machine, where it may be mounted; in a mount namespace of the test's own.
bool mount_debugfs(const tests::TempDir& dir) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", dir.path().c_str(), "debugfs", 0, nullptr) == 0 &&
         std::filesystem::exists(dir.path() / "kvm");
}

/// vCPUs sleep in KVM_RUN a moment after they were started.
vmm::VmmThreads observe(const vmm::Roots& roots, int pid) {
  base::Result<vmm::VmmThreads> found = base::fail(base::ErrorCode::kGone, "");
  for (int i = 0; i < 100; ++i) {
    found = tests::discover(roots, {.vmm = *vmm::identify(roots, pid), .cgroup = {}}, nullptr);
    REQUIRE(found);
    if (found->complete && found->vcpus.size() == 3) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return *found;
}

std::map<int, int> vcpus_of(const vmm::VmmThreads& found) {
  std::map<int, int> vcpus;
  for (const auto& thread : found.threads) {
    if (thread.role == policy::Role::kVcpu) vcpus[thread.vcpu_index] = thread.key.tid;
  }
  return vcpus;
}

}  // namespace

TEST_CASE("the vCPUs of an unknown VMM are found") {
  const TinyVm vm;
  if (!vm.runs()) {
    std::cout << "skipped: there is no KVM here that runs a VM\n";
    return;
  }
  const vmm::Roots by_files{.proc = "/proc", .debugfs = "/not/really"};
  CHECK(vmm::examine(by_files, vm.pid(), vmm::Word::kTenant)->is_vmm);
  CHECK_FALSE(vmm::examine(by_files, static_cast<int>(::getpid()), vmm::Word::kOperator)->is_vmm);
  const auto by_files_only = observe(by_files, vm.pid());
  CHECK(vcpus_of(by_files_only) == vm.vcpus());
  CHECK(by_files_only.vcpu_source.starts_with("kvm-fd"));
  const auto pit =
      std::ranges::find(by_files_only.threads, policy::Role::kPit, &policy::ThreadFacts::role);
  REQUIRE(pit != by_files_only.threads.end());
  CHECK(pit->name == "kvm-pit/" + std::to_string(vm.pid()));

  const tests::TempDir dir;
  if (!mount_debugfs(dir)) {
    std::cout << "without debugfs: it cannot be mounted here\n";
    return;
  }
  const auto found = observe({.proc = "/proc", .debugfs = dir.path()}, vm.pid());
  CHECK(vcpus_of(found) == vm.vcpus());
  CHECK(found.vcpu_source.starts_with("kvm-debugfs"));
  CHECK(found.conflicts.empty());
  ::umount(dir.path().c_str());
}
