// SPDX-License-Identifier: Apache-2.0
// Input and output of identifying a VMM's threads: plain values, shared by the
// backends and their callers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "policy/facts/process_id.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::vmm {

/// Where the kernel's trees are mounted, and what runtimes keep while they run: other places in
/// tests.
struct Roots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path debugfs = "/sys/kernel/debug";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
  std::filesystem::path sys = "/sys";
  std::filesystem::path run = "/run";  ///< below which Kata's runtimes have their folders
};

/// What the sources report of a sandbox, before discovery.
struct Target {
  policy::ProcessId vmm;
  /// Absolute directory of the sandbox cgroup; empty: none known. Its processes count as part
  /// of the sandbox, so it must be the sandbox's own.
  std::string cgroup;
  /// Our proxy before the sandbox's shim, which is not above the VMM; absent: none is known.
  std::optional<policy::ProcessId> proxy;
  /// An operator named the cgroup: what nothing shows to belong to the VM is not the sandbox's.
  /// (A runtime makes a cgroup for the sandbox, and starts helpers that leave their parents.)
  bool is_cgroup_named = false;

  bool operator==(const Target&) const = default;
};

/// How the VM was started, where a monitor tells it: a VMM's command line may not.
struct GuestBoot {
  std::optional<int> max_vcpus;  ///< that it may ever have
  /// Image of the guest's kernel, an absolute path on the host; empty: not reported.
  std::string kernel;
  /// vCPUs are plugged from the lowest index up, and unplugged from the highest down.
  bool plugs_in_order = false;

  bool operator==(const GuestBoot&) const = default;
};

/// What a monitor of the VMM (QMP, libvirt, an HTTP API) reported. Such answers arrive when
/// they arrive; discovery uses the last ones.
struct MonitorFacts {
  struct Vcpu {
    policy::VcpuFacts facts;
    int tid = 0;  ///< 0: unknown; the vCPU with that index, whatever its thread

    bool operator==(const Vcpu&) const = default;
  };
  struct Iothread {
    std::string id;
    int tid = 0;

    bool operator==(const Iothread&) const = default;
  };
  std::string source;  ///< "qmp", "libvirt", ...
  std::vector<Vcpu> vcpus;
  std::vector<Iothread> iothreads;
  GuestBoot boot;

  bool operator==(const MonitorFacts&) const = default;
};

struct VmmThreads {
  /// Thread group of the VMM: the `pid` of its threads' keys.
  int vmm_pid = 0;
  std::vector<policy::ThreadFacts> threads;  ///< by (pid, tid)
  std::vector<policy::VcpuFacts> vcpus;      ///< by index; each has a thread
  /// Which backend identified the vCPU threads, and, where that is another one, which gave the
  /// index: "kvm-debugfs", "kvm-debugfs, index by thread-names", "kvm-fd, index by APIC id".
  /// Empty without vCPUs.
  std::string vcpu_source;
  /// Contradictions between backends, as sentences. The more trustworthy backend wins.
  std::vector<std::string> conflicts;
  /// Threads and helpers with names that nothing known gives, as sentences, each name once. They
  /// have a role by elimination only.
  std::vector<std::string> unknown;
  /// Processes in the cgroup that are not the sandbox's, as sentences.
  std::vector<std::string> foreign;
  /// False while there are vCPUs whose thread is not identified yet, because it has not run or
  /// does not sleep at this moment: probe again soon.
  bool complete = true;
  /// Threads that were not seen this time and are listed as last seen; by key.
  std::vector<policy::ThreadKey> unread;
  /// What could not be read; empty: everything was. Otherwise facts known before stay.
  std::string trouble;

  bool operator==(const VmmThreads&) const = default;
};

}  // namespace ka::vmm
