// A node made of files: /proc, debugfs and a cgroup tree in a temporary directory, as the kernel
// would show them for the processes that a test invents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/temp_dir.hpp"

namespace ka::tests {

class FakeNode {
 public:
  std::filesystem::path proc() const { return dir_.path() / "proc"; }
  std::filesystem::path debugfs() const { return dir_.path() / "debug"; }
  std::filesystem::path cgroup() const { return dir_.path() / "cgroup"; }

  /// A process with its main thread. `program` is the target of its exe link; empty: none (a
  /// kernel thread).
  void process(int pid, int ppid, const std::string& comm, const std::string& program) const {
    const std::string base = "proc/" + std::to_string(pid);
    std::filesystem::create_directories(dir_.path() / base / "fd");
    if (!program.empty()) dir_.link(base + "/exe", program);
    dir_.write(base + "/cmdline", program + '\0');
    thread(pid, pid, comm, ppid);
  }

  void arguments(int pid, const std::vector<std::string>& arguments) const {
    std::string line;
    for (const std::string& argument : arguments) line += argument + '\0';
    dir_.write("proc/" + std::to_string(pid) + "/cmdline", line);
  }

  /// One more thread; also one that changes its name or, with another start time, is a new one.
  void thread(int pid, int tid, const std::string& comm, int ppid = 1, int start_time = 0,
              char state = 'S') const {
    const std::string stat = std::to_string(tid) + " (" + comm + ") " + state + ' ' +
                             std::to_string(ppid) + " 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 " +
                             std::to_string(start_time == 0 ? 100000 + tid : start_time) +
                             " 2 3 18446744073709551615 0\n";
    const std::string tgid = "Name:\t" + comm + "\nUmask:\t0022\nTgid:\t" + std::to_string(pid) +
                             "\nNgid:\t0\nPid:\t" + std::to_string(tid) + '\n';
    dir_.write(task(pid, tid) + "/stat", stat);
    dir_.write("proc/" + std::to_string(tid) + "/status", tgid);
  }

  void end_thread(int pid, int tid) const {
    std::filesystem::remove_all(dir_.path() / task(pid, tid));
    std::filesystem::remove_all(dir_.path() / "proc" / std::to_string(tid) / "status");
  }

  void end_process(int pid) const {
    std::filesystem::remove_all(dir_.path() / "proc" / std::to_string(pid));
  }

  void children(int pid, const std::string& pids) const {
    dir_.write(task(pid, pid) + "/children", pids);
  }

  void fd(int pid, int number, const std::string& target) const {
    dir_.link("proc/" + std::to_string(pid) + "/fd/" + std::to_string(number), target);
  }

  /// What /proc/<pid>/task/<tid>/syscall shows.
  void syscall(int pid, int tid, const std::string& line) const {
    dir_.write(task(pid, tid) + "/syscall", line);
  }

  /// The thread is inside ioctl(KVM_RUN) on a descriptor.
  void in_kvm_run(int pid, int tid, int fd) const {
    char line[96];
    std::snprintf(line, sizeof line, "16 0x%x 0xae80 0x0 0x0 0x0 0x0 0x7ffc 0x7f00\n",
                  static_cast<unsigned>(fd));
    syscall(pid, tid, line);
  }

  /// `vm` is "<tid>-<fd>".
  void kvm_vcpu(const std::string& vm, int id, int tid) const {
    dir_.write("debug/kvm/" + vm + "/vcpu" + std::to_string(id) + "/pid",
               std::to_string(tid) + '\n');
  }

  /// A version 2 hierarchy at cgroup() that controls cpusets.
  void cgroup_v2() const {
    dir_.write("proc/self/mountinfo",
               "30 1 0:26 / " + cgroup().string() + " rw - cgroup2 cgroup2 rw\n");
    dir_.write("cgroup/cgroup.controllers", "cpuset cpu memory\n");
  }

  /// Puts a process into a cgroup of it, and says what that cgroup allows.
  void in_cgroup(int pid, const std::string& name, const std::string& cpus) const {
    dir_.write("proc/" + std::to_string(pid) + "/cgroup", "0::/" + name + '\n');
    dir_.write("cgroup/" + name + "/cpuset.cpus.effective", cpus + '\n');
  }

  /// Writes the list of a cgroup's processes; returns the cgroup's directory.
  std::string cgroup_procs(const std::string& name, const std::string& pids) const {
    dir_.write("cgroup/" + name + "/cgroup.procs", pids);
    return (cgroup() / name).string();
  }

 private:
  static std::string task(int pid, int tid) {
    return "proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
  }

  TempDir dir_;
};

}  // namespace ka::tests
