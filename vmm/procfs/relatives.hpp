// SPDX-License-Identifier: Apache-2.0
// The processes that belong to a sandbox beside its VMM, found without a walk over the node. What
// could not be read is noted in `trouble`; the answer is then less than there is.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/trouble.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/facts/sandbox.hpp"
#include "vmm/procfs/thread_list.hpp"

namespace ka::vmm {

/// Base name of the program that a process runs: of its executable, or where that cannot be read
/// of its first argument. Empty when neither can.
std::string program_name(const std::filesystem::path& proc, int pid);
/// The same. kGone: the process has no program of its own, or it has ended; any other error: its
/// program cannot be seen.
base::Result<std::string> read_program_name(const std::filesystem::path& proc, int pid);

/// kShim for containerd-shim-* (not runc's: above a VMM it is the shim of the container that the
/// VMM runs in), that of its program (virtiofsd), kVhost for a vhost kernel thread that works for
/// one of `vmm_threads`, kPit for KVM's timer of its VM, kEmulator for KVM's timer of another one
/// (a shim stands for it) and recovery of huge pages, else kHelper.
policy::Role role_of_process(const std::filesystem::path& proc, const SeenProcess& process,
                             std::span<const SeenThread> vmm_threads);

/// Whether a helper of the name `comm` is one that Kata, QEMU or libvirt start beside a VMM.
bool is_known_helper(std::string_view comm);

/// Whether a process of the name `comm` (of 15 bytes at most, as kernels report it) is a shim:
/// containerd-shim-*, but not runc's.
bool is_shim(const std::filesystem::path& proc, int pid, std::string_view comm);

/// The children of all threads of a process: a child hangs on the thread that forked it, and Go
/// forks from any (proc(5), needs CONFIG_PROC_CHILDREN).
std::vector<int> children(const std::filesystem::path& proc, int pid, base::Trouble& trouble);

struct CgroupMembers {
  std::vector<int> pids;  ///< ascending
  bool is_cut = false;    ///< there are more processes, or more cgroups, than are read
};

/// Processes in a cgroup and the cgroups below it: 4096 at most, in 256 cgroups. A number may be
/// another process's by now: who reads more of it lists again after.
CgroupMembers cgroup_members(const std::filesystem::path& cgroup, base::Trouble& trouble);

/// A process and those above it, the nearest first, without the first process of the machine. 16 at
/// most. Shorter where a parent ends again and again while it is read. kGone: the process itself
/// has ended.
base::Result<std::vector<policy::ProcessId>> ancestry(const std::filesystem::path& proc, int pid);

/// The shims among the ancestors of the VMM: Kata's, and our proxy above it.
std::vector<policy::ProcessId> shim_ancestors(const std::filesystem::path& proc,
                                              const SeenProcess& vmm, base::Trouble& trouble);

/// The program in front of a sandbox's shim where there is no NRI (docs/understand/sources.md).
inline constexpr std::string_view kProxyProgram = "containerd-shim-kata-affinity-v2";

/// The proxy that has this number now. kGone: another process has it, or none.
base::Result<policy::ProcessId> find_proxy(const std::filesystem::path& proc, int pid);

/// virtiofsd processes among the children of `parents` (pids), and their own virtiofsd children
/// (it forks into its sandbox). 64 at most; more are trouble.
std::vector<policy::ProcessId> virtiofsd_children(const std::filesystem::path& proc,
                                                  const std::vector<int>& parents,
                                                  base::Trouble& trouble);

/// Kernel threads "vhost-N", N a thread of the VMM: how kernels before 6.4 run vhost workers. Asks
/// every kernel thread younger than the VMM for its name: only for one that has vhost devices open
/// and no worker among its own threads.
std::vector<policy::ProcessId> vhost_kernel_threads(const std::filesystem::path& proc,
                                                    const SeenProcess& vmm, base::Trouble& trouble);

/// Kernel threads "kvm-pit/N" and "kvm-nx-lpage-recovery-N", N the VMM or one of `children`: KVM's
/// timer for a VM that has one, and its recovery of huge pages before 6.13. Asks every kernel
/// thread younger than `vmm` for its name.
std::vector<policy::ProcessId> kvm_kernel_threads(const std::filesystem::path& proc,
                                                  const SeenProcess& vmm,
                                                  const std::vector<int>& children,
                                                  base::Trouble& trouble);

}  // namespace ka::vmm
