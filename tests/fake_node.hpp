// SPDX-License-Identifier: Apache-2.0
// A node made of files: /proc, debugfs and a cgroup tree in a temporary directory, as the kernel
// would show them for the processes that a test invents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "policy/facts/process_id.hpp"
#include "tests/temp_dir.hpp"

namespace ka::tests {

/// The identity of a process of a FakeNode.
inline policy::ProcessId process_id(int pid) {
  return {pid, 100000 + static_cast<std::uint64_t>(pid)};
}

class FakeNode {
 public:
  std::filesystem::path proc() const { return dir_.path() / "proc"; }
  std::filesystem::path debugfs() const { return dir_.path() / "debug"; }
  std::filesystem::path cgroup() const { return dir_.path() / "cgroup"; }
  std::filesystem::path sys() const { return dir_.path() / "sys"; }

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
    write_thread(pid, tid, comm, ppid, start_time, state, 0x00400100);
  }

  /// A thread that the kernel binds (PF_NO_SETAFFINITY).
  void bound_thread(int pid, int tid, const std::string& comm) const {
    write_thread(pid, tid, comm, 1, 0, 'S', 0x04400100);
  }

  /// What /proc/<pid>/task/<tid>/schedstat shows: nanoseconds that it ran and waited.
  void schedstat(int pid, int tid, std::uint64_t waited) const {
    ran(pid, tid, 123456789, 42, waited);
  }
  /// The same, with how often it was given a CPU.
  void ran(int pid, int tid, std::uint64_t nanoseconds, std::uint64_t slices,
           std::uint64_t waited = 0) const {
    dir_.write(task(pid, tid) + "/schedstat", std::to_string(nanoseconds) + ' ' +
                                                  std::to_string(waited) + ' ' +
                                                  std::to_string(slices) + '\n');
  }

  /// What /proc/schedstat and /proc/interrupts show of the only CPU that runs anything.
  void cpu_ran(int cpu, std::uint64_t nanoseconds, std::uint64_t slices,
               std::uint64_t interrupts = 0, std::uint64_t passed_through = 900) const {
    const std::string number = std::to_string(cpu);
    dir_.write("proc/schedstat", "version 15\ntimestamp 4300\ncpu" + number + " 0 0 0 0 0 0 " +
                                     std::to_string(nanoseconds) + " 0 " + std::to_string(slices) +
                                     "\ndomain0 3 0 0\n");
    dir_.write("proc/interrupts",
               "     CPU" + number + "\n 24: " + std::to_string(interrupts) +
                   " PCI-MSI 0-edge nvme0q1\n 25: " + std::to_string(passed_through) +
                   " PCI-MSI 0-edge " + "vfio-msix[0](0000:01:00.0)\nLOC: 777 Local timer\n");
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

  /// A cgroup with threads in it ("71\n72\n"), and what it allows.
  void tenant(const std::string& name, const std::string& cpus, const std::string& tids) const {
    dir_.write("cgroup/" + name + "/cpuset.cpus.effective", cpus + '\n');
    dir_.write("cgroup/" + name + "/cgroup.threads", tids);
  }

  /// Writes the list of a cgroup's processes; returns the cgroup's directory.
  std::string cgroup_procs(const std::string& name, const std::string& pids) const {
    dir_.write("cgroup/" + name + "/cgroup.procs", pids);
    return (cgroup() / name).string();
  }

  /// A PCI device in the hands of VFIO, in an IOMMU group, and by name ("vfio0") for iommufd.
  void vfio_device(const std::string& id, int group, const std::string& name, int node = -1) const {
    const std::string pci = "sys/bus/pci/devices/" + id;
    dir_.write(pci + "/numa_node", std::to_string(node) + '\n');
    dir_.write(pci + "/irq", "0\n");
    std::filesystem::create_directories(dir_.path() / pci / "msi_irqs");
    dir_.link(pci + "/driver", "../../../../bus/pci/drivers/vfio-pci");
    const std::string number = std::to_string(group);
    dir_.link("sys/kernel/iommu_groups/" + number + "/devices/" + id, "../../../../devices/" + id);
    std::filesystem::create_directories(dir_.path() / "sys/class/vfio" / number);
    dir_.link("sys/class/vfio-dev/" + name + "/device", "../../../" + id);
  }

  /// An interrupt of it; `handlers` as the kernel lists them.
  void msi(const std::string& id, int number, const std::string& handlers,
           const std::string& cpus) const {
    dir_.write("sys/bus/pci/devices/" + id + "/msi_irqs/" + std::to_string(number), "msix\n");
    interrupt(number, handlers, cpus);
  }

  void interrupt(int number, const std::string& handlers, const std::string& cpus) const {
    dir_.write("sys/kernel/irq/" + std::to_string(number) + "/actions", handlers + '\n');
    send_interrupt(number, cpus);
  }

  /// As anybody else writes it.
  void send_interrupt(int number, const std::string& cpus) const {
    dir_.write(affinity_of(number), cpus + '\n');
  }

  std::string interrupt_cpus(int number) const {
    std::string text;
    std::getline(std::ifstream(dir_.path() / affinity_of(number)), text);
    return text;
  }

  /// The device gives its interrupt back.
  void free_interrupt(const std::string& id, int number) const {
    const std::string name = std::to_string(number);
    std::filesystem::remove(dir_.path() / "sys/bus/pci/devices" / id / "msi_irqs" / name);
    std::filesystem::remove_all(dir_.path() / "sys/kernel/irq" / name);
    std::filesystem::remove_all(dir_.path() / "proc/irq" / name);
  }

  /// An interrupt that cannot be moved: a file of the kernel's that tells CPUs, and that nobody may
  /// write.
  void nail_interrupt(int number) const {
    std::filesystem::remove(dir_.path() / affinity_of(number));
    dir_.link(affinity_of(number), "/sys/devices/system/cpu/online");
  }

  void write(const std::string& file, const std::string& text) const { dir_.write(file, text); }

  /// Lets every attempt to read a file, a directory or a link fail, though it is there. Returns
  /// what makes it readable again.
  std::function<void()> make_unreadable(const std::string& name) const {
    const std::filesystem::path path = dir_.path() / name, aside = path.native() + ".aside";
    const bool is_link = std::filesystem::is_symlink(path);
    std::filesystem::rename(path, aside);
    if (is_link) {
      dir_.write(name, "");
    } else {
      dir_.link(name, path);
    }
    return [path, aside] {
      std::filesystem::remove(path);
      std::filesystem::rename(aside, path);
    };
  }

 private:
  void write_thread(int pid, int tid, const std::string& comm, int ppid, int start_time, char state,
                    unsigned flags) const {
    const std::string stat = std::to_string(tid) + " (" + comm + ") " + state + ' ' +
                             std::to_string(ppid) + " 1 1 0 -1 " + std::to_string(flags) +
                             " 1 0 0 0 0 0 0 0 20 0 1 0 " +
                             std::to_string(start_time == 0 ? 100000 + tid : start_time) +
                             " 2 3 18446744073709551615 0\n";
    const std::string tgid = "Name:\t" + comm + "\nUmask:\t0022\nTgid:\t" + std::to_string(pid) +
                             "\nNgid:\t0\nPid:\t" + std::to_string(tid) + '\n';
    dir_.write(task(pid, tid) + "/stat", stat);
    dir_.write("proc/" + std::to_string(tid) + "/status", tgid);
  }

  static std::string affinity_of(int number) {
    return "proc/irq/" + std::to_string(number) + "/smp_affinity_list";
  }

  static std::string task(int pid, int tid) {
    return "proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
  }

  TempDir dir_;
};

}  // namespace ka::tests
