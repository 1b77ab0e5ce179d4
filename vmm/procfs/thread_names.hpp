// What a VMM's thread says of itself by its name (comm).
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

/// Understands "CPU n/KVM" and "CPU n/TCG" (QEMU), "vcpuN" (Cloud Hypervisor), "fc_vcpu N"
/// (Firecracker), "db_vcpuN" (Dragonball), "vp-N" (OpenVMM), "IO <id>" (QEMU's iothreads; not
/// "IO mon_iothread", which serves QEMU's monitor) and "vhost-N" (the kernel's vhost workers).
/// Nothing for any other name. Numbers are plain decimals below 8192.
std::optional<NameMeaning> read_thread_name(std::string_view comm);

}  // namespace ka::vmm
