// SPDX-License-Identifier: Apache-2.0
// What a VMM thread's name (comm) reveals of its role.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/facts/sandbox.hpp"

namespace ka::vmm {

struct NameMeaning {
  policy::Role role = policy::Role::kEmulator;
  int number = -1;       ///< a vCPU's index; of a vhost worker the thread that it works for
  std::string iothread;  ///< an iothread's id

  bool operator==(const NameMeaning&) const = default;
};

/// Understands "CPU n/KVM" and "CPU n/TCG" (QEMU, StratoVirt), "vcpuN" (Cloud Hypervisor), "fc_vcpu
/// N" (Firecracker), "db_vcpuN" (Dragonball), "vp-N" (OpenVMM), "IO <id>" (QEMU's iothreads; not
/// "IO mon_iothread", which serves QEMU's monitor), the queue threads of Cloud Hypervisor
/// ("_net1_qp0", "_disk0_q1", "_fs2", as iothreads "net1_qp0" ...) and Dragonball
/// ("blk_iothread_q0"), and "vhost-N" (the kernel's vhost workers). Nothing for any other name.
/// Numbers are plain decimals below 8192.
std::optional<NameMeaning> read_thread_name(std::string_view comm);

/// Threads that the kernel makes inside the VMM (vhost_task_create: vhost workers since 6.4, KVM's
/// recovery of huge pages since 6.13; create_io_thread: io_uring's).
bool is_made_by_kernel(std::string_view comm);

/// Whether a thread that no backend claims has a name that a known VMM or the kernel gives.
bool is_known_emulator(std::string_view comm);

/// The thread for which io_uring made one of this name: "iou-wrk-N" (io_uring/io-wq.c) and
/// "iou-sqp-N" (io_uring/sqpoll.c). Nothing for any other name.
std::optional<int> io_uring_submitter(std::string_view comm);

/// KVM's recovery of huge pages: "kvm-nx-lpage-recovery-PID" as a kernel thread before 6.13,
/// "kvm-nx-lpage-re" in the VMM since then.
bool is_huge_page_recovery(std::string_view comm);

/// Of a thread that nothing else identifies, in a process that is more than a VMM: whether it works
/// for the VM. Dragonball's "vmm_master", and what the kernel makes for it.
bool belongs_to_vm(std::string_view comm);

}  // namespace ka::vmm
