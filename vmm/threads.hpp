// Which threads a sandbox's VMM has, and what each is for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/base/process.hpp"
#include "affinity/base/result.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::vmm {

/// Where the kernel's trees are mounted: other places in tests.
struct Roots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path debugfs = "/sys/kernel/debug";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

/// What the sources know of a sandbox before anyone looked.
struct Target {
  int vmm_pid = 0;
  std::string sandbox_id;
  std::string cgroup;  ///< absolute directory of the sandbox cgroup; empty: none known
};

/// What a monitor of the VMM (QMP, libvirt, an HTTP API) told about it. Such answers arrive when
/// they arrive; discovery uses the last ones.
struct MonitorFacts {
  struct Vcpu {
    policy::VcpuFacts facts;
    int tid = 0;
  };
  struct Iothread {
    std::string id;
    int tid = 0;
  };
  std::string source;  ///< "qmp", "libvirt", ...
  std::vector<Vcpu> vcpus;
  std::vector<Iothread> iothreads;
};

struct VmmThreads {
  std::vector<policy::ThreadFacts> threads;  ///< by (pid, tid)
  std::vector<policy::VcpuFacts> vcpus;      ///< by index
  /// Which backend named the vCPUs: "kvm-debugfs", "qmp", "kvm-fd", "thread-names".
  std::string vcpu_source;
  /// Where backends contradicted each other, in words.
  std::vector<std::string> conflicts;
};

/// True when the process is a VMM: it holds a KVM VM (`anon_inode:kvm-vm`), or, under software
/// emulation, is QEMU by its command line. Used to refuse a pid that is something else.
base::Result<bool> is_vmm(const Roots& roots, int pid);

/// Lists and names every thread of the sandbox: those of the VMM, its vhost kernel threads, its
/// virtiofsd, its shim, and any other process of the sandbox cgroup (helper). `monitor` may be
/// null. Threads that die while they are looked at are left out. kGone when the VMM itself is.
base::Result<VmmThreads> discover(const Roots& roots, const Target& target,
                                  const MonitorFacts* monitor);

}  // namespace ka::vmm
