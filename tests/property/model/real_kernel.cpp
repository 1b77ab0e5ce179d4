// SPDX-License-Identifier: Apache-2.0
#include "tests/property/model/real_kernel.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "affinity/host/affinity_calls.hpp"
#include "tests/property/model/world.hpp"

namespace ka::model {
namespace {

using policy::CpuSet;

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << std::flush;
  if (!stream) throw std::runtime_error("cannot write \"" + text + "\" to " + file.string());
}

/// In the child: a thread for each byte, until the parent ends.
[[noreturn]] void serve_threads(int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char byte = 0;
  while (::read(socket, &byte, 1) == 1) {
    std::thread([socket] {
      const pid_t tid = ::gettid();
      if (::write(socket, &tid, sizeof tid) != sizeof tid) ::_exit(1);
      for (;;) ::pause();
    }).detach();
  }
  ::_exit(0);
}

int next_thread(const base::Fd& socket) {
  pid_t tid = 0;
  if (::write(socket.get(), "t", 1) != 1 || ::read(socket.get(), &tid, sizeof tid) != sizeof tid) {
    throw std::runtime_error("a process of the model has ended");
  }
  return tid;
}

}  // namespace

RealKernel::RealKernel(std::filesystem::path cgroup)
    : cgroup_(std::move(cgroup)), online_(CpuSet::range(0, kCpus - 1)) {
  write(cgroup_.parent_path() / "cgroup.subtree_control", "+cpuset");
  std::filesystem::create_directories(cgroup_ / "pods");
  write(cgroup_ / "cgroup.subtree_control", "+cpuset");
  write(cgroup_ / "pods/cgroup.subtree_control", "+cpuset");
}

RealKernel::~RealKernel() {
  while (!vmms_.empty()) end(vmms_.begin()->first);
  ::rmdir((cgroup_ / "pods").c_str());
  ::rmdir(cgroup_.c_str());
  set_online(CpuSet::range(0, kCpus - 1));
}

bool RealKernel::forgets() {
  utsname name{};
  int major = 0, minor = 0;
  ::uname(&name);
  return std::sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
         (major < 6 || (major == 6 && minor < 2));
}

void RealKernel::boot(const std::string& pod, int pid) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    throw std::runtime_error("no socket for a process of the model");
  }
  Vmm vmm;
  vmm.pod = pod;
  vmm.pid = ::fork();
  if (vmm.pid == 0) serve_threads(sockets[1]);
  ::close(sockets[1]);
  vmm.socket = base::Fd(sockets[0]);
  std::filesystem::create_directory(folder(pod));
  write(folder(pod) / "cgroup.procs", std::to_string(vmm.pid));
  vmm.tids[pid] = vmm.pid;
  vmms_[pid] = std::move(vmm);
}

void RealKernel::plug(int pid, int tid) {
  Vmm& vmm = vmms_.at(pid);
  vmm.tids[tid] = next_thread(vmm.socket);
}

void RealKernel::unplug(int pid, int tid) { vmms_.at(pid).tids.erase(tid); }

void RealKernel::end(int pid) {
  const Vmm& vmm = vmms_.at(pid);
  ::kill(vmm.pid, SIGKILL);
  ::waitpid(vmm.pid, nullptr, 0);
  // The kernel takes the last thread out of a cgroup only after its process was waited for.
  while (::rmdir(folder(vmm.pod).c_str()) != 0 && errno == EBUSY) std::this_thread::yield();
  vmms_.erase(pid);
}

int RealKernel::set_mask(int pid, int tid, const CpuSet& mask) {
  host::KernelAffinityCalls calls;
  const auto done = calls.set({0, vmms_.at(pid).tids.at(tid), 0}, mask);
  return done ? 0 : done.error().number;
}

std::string RealKernel::difference_now(const std::map<int, CpuSet>& masks) const {
  host::KernelAffinityCalls calls;
  for (const auto& [pid, vmm] : vmms_) {
    for (const auto& [tid, real] : vmm.tids) {
      const CpuSet mask = calls.get(real).value_or(CpuSet{});
      if (mask == masks.at(tid)) continue;
      return "thread " + std::to_string(tid) + " may run on " + policy::format_list(mask) +
             ", not " + policy::format_list(masks.at(tid));
    }
  }
  return {};
}

std::string RealKernel::difference(const std::map<int, CpuSet>& masks) const {
  std::string text = difference_now(masks);
  for (int i = 0; i < 200 && !text.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    text = difference_now(masks);
  }
  return text;
}

void RealKernel::confine(const std::string& pod, const CpuSet& cpus) {
  write(folder(pod) / "cpuset.cpus", policy::format_list(cpus) + '\n');
}

void RealKernel::set_online(const CpuSet& online) {
  for (int cpu = 1; cpu < kCpus; ++cpu) {
    if (online.contains(cpu) == online_.contains(cpu)) continue;
    write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online",
          online.contains(cpu) ? "1" : "0");
  }
  online_ = online;
}

}  // namespace ka::model
