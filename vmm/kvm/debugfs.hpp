// SPDX-License-Identifier: Apache-2.0
// vCPUs by KVM's debugfs: /sys/kernel/debug/kvm/<tid>-<fd>/vcpu<id>/pid (kernel >= 6.0;
// virt/kvm/kvm_main.c, arch/x86/kvm/debugfs.c). Root only, absent where debugfs is not mounted;
// lockdown does not close it, as files are read-only (fs/debugfs/file.c).
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "base/trouble.hpp"

namespace ka::vmm {

struct KvmVcpu {
  int id = 0;   ///< KVM's vcpu_id: the APIC id on x86
  int tid = 0;  ///< the thread that ran it last; 0: never ran. It may be dead: QEMU keeps the vCPUs
                ///< that it unplugged

  bool operator==(const KvmVcpu&) const = default;
};

/// The vCPUs of the VMs that were created by a thread for which `is_ours` holds, by id; a VMM with
/// several VMs has them all here. Empty when there is no debugfs to read; what
/// is there and cannot be read is noted in `trouble`.
/// (The directory is named after the thread that created the VM: the main one in QEMU, others in
/// Cloud Hypervisor and Dragonball.)
std::vector<KvmVcpu> read_kvm_vcpus(const std::filesystem::path& debugfs,
                                    const std::function<bool(int tid)>& is_ours,
                                    base::Trouble& trouble);

}  // namespace ka::vmm
