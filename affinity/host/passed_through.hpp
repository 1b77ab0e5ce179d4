// SPDX-License-Identifier: Apache-2.0
// Devices that are passed through to a VM, and their interrupts.
//
// A VMM's open files show its devices: VFIO's groups ("/dev/vfio/12") or, with iommufd, the
// devices ("/dev/vfio/devices/vfio0"; Documentation/driver-api/vfio.rst). sysfs lists a device's
// interrupts, and the name of the handler shows whether VFIO handles one
// (drivers/vfio/pci/vfio_pci_intrs.c): "vfio-msix[3](0000:01:00.0)", "vfio-msi[0](...)",
// "vfio-intx(...)". They appear when the guest's driver requests them, without an event.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/trouble.hpp"
#include "policy/facts/interrupts.hpp"

namespace ka::host {

/// Targets of a process's descriptors by which a device reaches the guest's memory by itself: VFIO
/// by either of its interfaces, and vDPA. `process` is its directory in /proc. With trouble, there
/// may be more.
std::vector<std::string> device_files(const std::filesystem::path& process, base::Trouble& trouble);

/// The handlers of one interrupt, as /sys/kernel/irq/<number>/actions lists them
/// (actions_show() in kernel/irq/irqdesc.c): VFIO's for this device, and all others.
struct Handlers {
  std::string own;     ///< empty: VFIO does not handle it for this device
  std::string others;  ///< separated by commas

  bool operator==(const Handlers&) const = default;
};
Handlers parse_handlers(std::string_view actions, std::string_view device);

/// Whether the node has VFIO devices. `sys` is where sysfs is mounted. At most two attempts to list
/// a directory.
base::Result<bool> has_vfio(const std::filesystem::path& sys);

/// The PCI devices that are passed through to a VMM and those of their interrupts that VFIO
/// handles. `proc` and `sys` are where those are mounted. On a node without VFIO devices it costs
/// has_vfio(); else a link of each open file, and two reads an interrupt. With trouble, there may
/// be more.
policy::PassedThrough find_passed_through(const std::filesystem::path& proc,
                                          const std::filesystem::path& sys, int vmm,
                                          base::Trouble& trouble);

/// Has the kernel send an interrupt to these CPUs only (/proc/irq/<number>/smp_affinity_list), and
/// returns the resulting set. kGone: the number belongs to another handler, or to none. Nothing is
/// written while its handlers cannot be read. The kernel refuses interrupts that cannot be moved
/// with EIO, since Linux 6.12 EPERM, or with EINVAL (write_irq_affinity() in kernel/irq/proc.c,
/// irq_set_affinity()), and with ENOSPC when the CPUs have no vector left.
base::Result<policy::CpuSet> send_interrupt(const std::filesystem::path& proc,
                                            const std::filesystem::path& sys,
                                            const policy::InterruptFacts& interrupt,
                                            const policy::CpuSet& cpus);

}  // namespace ka::host
