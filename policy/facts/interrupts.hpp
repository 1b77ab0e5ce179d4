// SPDX-License-Identifier: Apache-2.0
// Devices that a VM has for itself (VFIO), and the interrupts by which they reach the host: plain
// values.
#pragma once

#include <string>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::policy {

/// A PCI device that is passed through to a VM.
struct DeviceFacts {
  std::string id;  ///< domain, bus, slot and function, as sysfs has them: "0000:01:00.0"
  int node = -1;   ///< the NUMA node that it is attached to; -1: none is known

  bool operator==(const DeviceFacts&) const = default;
};

/// One interrupt of such a device.
struct InterruptFacts {
  int number = 0;           ///< the kernel's (/proc/irq/<number>); reused when it was freed
  std::string device;       ///< id
  std::string name;         ///< who handles it: "vfio-msix[3](0000:01:00.0)"
  std::string shared_with;  ///< names of other handlers of it; empty: none
  CpuSet cpus;              ///< to which of them the kernel may send it

  bool operator==(const InterruptFacts&) const = default;
};

/// What is passed through to one VM.
struct PassedThrough {
  std::vector<DeviceFacts> devices;        ///< by ascending id
  std::vector<InterruptFacts> interrupts;  ///< by ascending number

  bool operator==(const PassedThrough&) const = default;
};

}  // namespace ka::policy
