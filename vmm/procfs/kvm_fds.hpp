// SPDX-License-Identifier: Apache-2.0
// What the open files of a process show of its VM: which VMs and vCPUs it has, whether it uses
// vhost, and which thread runs which vCPU.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ka::vmm {

struct OpenFds {
  int kvm_vms = 0;               ///< "anon_inode:kvm-vm"
  std::map<int, int> kvm_vcpus;  ///< "anon_inode:kvm-vcpu:N": descriptor -> N (the APIC id on x86)
  int vhost_devices = 0;         ///< /dev/vhost-{net,vsock,scsi}: each gets one worker
  std::vector<int> sockets;      ///< descriptors of sockets of any kind
};

/// Adds the target of one descriptor's link.
void add_fd(OpenFds& fds, int number, std::string_view link_target);

/// Reads the links of /proc/<pid>/fd.
base::Result<OpenFds> read_fds(const std::filesystem::path& proc, int pid);

/// The descriptor on which a thread is inside ioctl(KVM_RUN), from its /proc/<tid>/syscall
/// ("16 0x1b 0xae80 0x0 ..."). Nothing while it runs or does something else.
std::optional<int> kvm_run_fd(std::string_view syscall_line);

}  // namespace ka::vmm
