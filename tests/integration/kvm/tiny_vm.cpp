// SPDX-License-Identifier: Apache-2.0
// A KVM VM of three vCPUs that only halt: not a VMM that the code knows. Prints "vcpu ID TID" for
// each, then "ready", and stays until it is ended.
#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr int kVcpus = 3;
constexpr std::size_t kPage = 4096;

void need(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(77);
}

/// `hlt; jmp` back to it, where a vCPU in real mode begins.
void load_guest(int vm) {
  void* memory = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  need(memory != MAP_FAILED, "mmap");
  constexpr std::array<unsigned char, 3> kCode = {0xf4, 0xeb, 0xfd};
  std::memcpy(memory, kCode.data(), kCode.size());
  const kvm_userspace_memory_region region{
      .slot = 0,
      .flags = 0,
      .guest_phys_addr = 0,
      .memory_size = kPage,
      .userspace_addr = reinterpret_cast<std::uintptr_t>(memory)};
  need(::ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) == 0, "KVM_SET_USER_MEMORY_REGION");
}

void start_at_zero(int vcpu) {
  kvm_sregs special{};
  need(::ioctl(vcpu, KVM_GET_SREGS, &special) == 0, "KVM_GET_SREGS");
  special.cs.base = 0;
  special.cs.selector = 0;
  need(::ioctl(vcpu, KVM_SET_SREGS, &special) == 0, "KVM_SET_SREGS");
  const kvm_regs registers{.rip = 0, .rflags = 2};
  need(::ioctl(vcpu, KVM_SET_REGS, &registers) == 0, "KVM_SET_REGS");
}

/// With an interrupt controller in the kernel a halted vCPU stays in KVM_RUN, and so does one that
/// was never started.
[[noreturn]] void run(int vcpu) {
  for (;;) {
    if (::ioctl(vcpu, KVM_RUN, 0) != 0 && errno != EINTR) need(false, "KVM_RUN");
    ::usleep(100000);
  }
}

}  // namespace

int main() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int kvm = ::open("/dev/kvm", O_RDWR | O_CLOEXEC);
  need(kvm >= 0, "/dev/kvm");
  const int vm = ::ioctl(kvm, KVM_CREATE_VM, 0);
  need(vm >= 0, "KVM_CREATE_VM");
  need(::ioctl(vm, KVM_CREATE_IRQCHIP, 0) == 0, "KVM_CREATE_IRQCHIP");
  const kvm_pit_config timer{};
  need(::ioctl(vm, KVM_CREATE_PIT2, &timer) == 0, "KVM_CREATE_PIT2");
  load_guest(vm);
  std::vector<std::thread> threads;
  for (int id = 0; id < kVcpus; ++id) {
    const int vcpu = ::ioctl(vm, KVM_CREATE_VCPU, id);
    need(vcpu >= 0, "KVM_CREATE_VCPU");
    if (id == 0) start_at_zero(vcpu);
    threads.emplace_back([id, vcpu] {
      std::printf("vcpu %d %d\n", id, ::gettid());
      std::fflush(stdout);
      run(vcpu);
    });
  }
  ::pause();
}
