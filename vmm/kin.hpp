// SPDX-License-Identifier: Apache-2.0
// The processes that belong to a VMM other than by cgroup: by descent, as the kernel's
// threads for its devices, or because they serve devices of its VM.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/trouble.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/procfs/kvm_fds.hpp"
#include "vmm/procfs/thread_list.hpp"

namespace ka::vmm {

/// By pid with their start times: what has such a number later is another process.
using Processes = std::map<int, std::uint64_t>;

bool has_process(const Processes& some, const policy::ProcessId& process);

/// Processes of one kind. A search walks over the node, so it is done a limited number of times.
struct Search {
  int most = 1;  ///< times that it is done
  Processes found = {};
  int tries = 0;

  bool due() const { return tries < most; }
  void record(Processes processes) {
    found = std::move(processes);
    ++tries;
  }
  /// Something has changed: it is done again.
  void renew() { tries = 0; }
};

class Kin {
 public:
  /// Searches for processes that may have appeared. `has_monitor`: the VMM's monitor answers.
  void find(const Roots& roots, const Target& target, const SeenProcess& vmm, const OpenFds& fds,
            bool has_monitor, base::Trouble& trouble);
  /// `shim` stands for the VMM that it starts: searches for KVM's threads of that one, until there
  /// are some.
  void find_started(const Roots& roots, const SeenProcess& shim, base::Trouble& trouble);
  /// The next find() searches for all of them.
  void renew();

  /// By descent or as a kernel thread; not those that only serve.
  bool has(const policy::ProcessId& process) const;
  bool serves(const policy::ProcessId& process) const;
  /// By a unix socket. Those that serve a device are among them.
  bool is_connected(const policy::ProcessId& process) const;
  /// All of them.
  std::set<int> pids() const;
  /// The VMM is connected to processes that are not seen to serve it yet: search again soon.
  bool is_incomplete() const { return serving_wanted_; }

 private:
  void find_relatives(const Roots& roots, const Target& target, const SeenProcess& vmm,
                      base::Trouble& trouble);
  void find_vhost(const Roots& roots, const SeenProcess& vmm, const OpenFds& fds,
                  base::Trouble& trouble);
  void find_kvm_threads(const Roots& roots, const SeenProcess& vmm, const OpenFds& fds,
                        bool has_monitor, base::Trouble& trouble);
  void find_serving(const Roots& roots, const SeenProcess& vmm, const OpenFds& fds,
                    base::Trouble& trouble);

  Processes relatives_;  ///< shims and virtiofsd by descent
  /// Kernel threads, searched again only when the number of vhost devices changed, or a few
  /// times more while there are fewer workers than devices.
  Search vhost_{.most = 5};
  int vhost_devices_ = 0;
  /// Processes that serve devices of the VM by vhost-user. One begins with the guest's driver, of
  /// which nothing reports: while the VMM is connected to others they are searched a few times.
  Search serving_{.most = 10};
  bool serving_wanted_ = false;
  Processes connected_;  ///< as of the last of these searches
  /// Searched once there are vCPUs. QEMU creates its timer after them and before its monitor
  /// answers (pc_basic_device_init() in hw/i386/pc.c): searched again then.
  Search kvm_threads_{.most = 3};
  bool has_monitor_ = false;
  /// KVM's threads of the VMM that a shim stands for, which is probed a few times (StartProbes).
  Search started_{.most = 20};
};

}  // namespace ka::vmm
