// SPDX-License-Identifier: Apache-2.0
// Processes that serve devices of a VM over unix sockets: vhost-user back-ends (virtiofsd, SPDK,
// DPDK, qemu-storage-daemon). No source reports them: they are the peers of the VMM's sockets that
// have the VM's memory mapped, as vhost-user requires.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/trouble.hpp"

namespace ka::vmm {

/// Processes at the other ends of unix sockets that `pid` has open as `descriptors`: those that
/// called connect(2), or listen(2) (SO_PEERCRED). Ascending, without `pid` itself; 64 at most;
/// more are trouble.
/// Empty if `proc` is no procfs (its pids name no processes), on kernels before 5.6, or without
/// CAP_SYS_PTRACE (pidfd_getfd(2)).
std::vector<int> unix_peers(const std::filesystem::path& proc, int pid,
                            std::span<const int> descriptors, base::Trouble& trouble);

/// Files that a process has mapped to share what it writes there, as "DEV INODE": a VM's memory,
/// where others may reach it. Of the text of /proc/<pid>/maps.
std::set<std::string> shared_files(std::string_view maps);

/// Which of `peers` have some of the VM's memory mapped: its back-ends.
std::vector<int> back_ends(const std::filesystem::path& proc, int vmm, std::span<const int> peers,
                           base::Trouble& trouble);

}  // namespace ka::vmm
