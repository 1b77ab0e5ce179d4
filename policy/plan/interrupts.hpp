// SPDX-License-Identifier: Apache-2.0
// Which CPUs get the interrupts of passed-through devices.
//
// The handler of such an interrupt only signals an eventfd, upon which KVM gives the guest its own
// interrupt (drivers/vfio/pci/vfio_pci_intrs.c, vfio_msihandler(); virt/kvm/eventfd.c,
// irqfd_wakeup()). That is cheapest where a vCPU runs that will take it. Which vCPU that is, the
// guest's driver decides inside the guest; so a device has one set for all of its interrupts, and
// the kernel sends each to one CPU of the set.
#pragma once

#include "policy/facts/id_set.hpp"
#include "policy/facts/interrupts.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {

/// The CPUs of the vCPUs that serve exclusive containers, where there are none those of all vCPUs;
/// of these the ones on the device's NUMA node, if any is there. Empty: the interrupts are left
/// alone, because the vCPUs are, or have no CPU.
CpuSet interrupt_cpus(const Topology& topology, const SandboxPlan& plan, const DeviceFacts& device);

}  // namespace ka::policy::plan
