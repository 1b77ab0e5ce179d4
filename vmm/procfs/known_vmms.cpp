// SPDX-License-Identifier: Apache-2.0
#include "vmm/procfs/known_vmms.hpp"

#include <algorithm>
#include <array>

namespace ka::vmm {
namespace {

using Program = std::string_view;

// accel/kvm/kvm-accel-ops.c, accel/tcg/tcg-accel-ops-mttcg.c; StratoVirt names threads alike.
constexpr std::array<Program, 2> kQemuPrograms = {"qemu-system-", "qemu-kvm"};
constexpr std::array kQemuVcpus = {VcpuName{"CPU ", "/KVM"}, VcpuName{"CPU ", "/TCG"}};
// util/rcu.c, util/thread-pool.c, monitor/monitor.c, ui/vnc-jobs.c, io/task.c, migration/*.c
// (before 9.2 without "mig/"), system/dirtylimit.c, and the threads of GLib and SPICE.
constexpr std::array<std::string_view, 23> kQemuEmulators = {"call_rcu",
                                                             "worker",
                                                             "IO mon_iothread",
                                                             "vnc_worker",
                                                             "io-task-worker",
                                                             "mig/",
                                                             "migration",
                                                             "live_migration",
                                                             "multifd",
                                                             "bg_snapshot",
                                                             "return path",
                                                             "postcopy/",
                                                             "COLO",
                                                             "colo-compare",
                                                             "vfio-",
                                                             "dirty",
                                                             "get_dirtyrate",
                                                             "touch_pages",
                                                             "pool-",
                                                             "gmain",
                                                             "gdbus",
                                                             "SPICE",
                                                             "edu"};
constexpr std::array<Program, 1> kStratovirtPrograms = {"stratovirt"};

// vmm/src/cpu.rs; virtio-devices/src/net.rs, block.rs, vmm/src/device_manager.rs, and the ids that
// Kata's clh.go gives to disks that it plugs.
constexpr std::array<Program, 1> kCloudHypervisorPrograms = {"cloud-hypervisor"};
constexpr std::array kCloudHypervisorVcpus = {VcpuName{"vcpu"}};
constexpr std::array kCloudHypervisorQueues = {QueueName{"_net", "_qp"}, QueueName{"_disk", "_q"},
                                               QueueName{"_fs"}, QueueName{"clh_drive_", "_q"}};

// vmm/src/lib.rs, api/http/mod.rs, vm.rs (signals), serial_manager.rs, memory_manager.rs; devices'
// threads have the ids of vmm/src/device_manager.rs.
constexpr std::array<std::string_view, 9> kCloudHypervisorEmulators = {
    "vmm",           "http-server", "signal_handler",
    "event-monitor", "dbus-thread", "serial-manager",
    "restore",       "migrat",      "_"};

// vmm/src/vstate/vcpu.rs, firecracker/src/api_server_adapter.rs
constexpr std::array<Program, 1> kFirecrackerPrograms = {"firecracker"};
constexpr std::array kFirecrackerVcpus = {VcpuName{"fc_vcpu "}};
constexpr std::array<std::string_view, 1> kFirecrackerEmulators = {"fc_"};

// src/vcpu/vcpu_impl.rs; the block device's threads. It is a part of the shim: it is known by its
// VM.
constexpr std::array kDragonballVcpus = {VcpuName{"db_vcpu"}};
constexpr std::array kDragonballQueues = {QueueName{"blk_iothread_q"}};

// As Kata runs it: openvmm/inner_hypervisor.rs.
constexpr std::array<Program, 1> kOpenvmmPrograms = {"openvmm"};
constexpr std::array kOpenvmmVcpus = {VcpuName{"vp-"}};

constexpr std::array kVmms = {
    KnownVmm{"QEMU", kQemuPrograms, kQemuVcpus, {}, kQemuEmulators},
    KnownVmm{"StratoVirt", kStratovirtPrograms, kQemuVcpus},
    KnownVmm{"Cloud Hypervisor", kCloudHypervisorPrograms, kCloudHypervisorVcpus,
             kCloudHypervisorQueues, kCloudHypervisorEmulators},
    KnownVmm{"Firecracker", kFirecrackerPrograms, kFirecrackerVcpus, {}, kFirecrackerEmulators},
    KnownVmm{"Dragonball", {}, kDragonballVcpus, kDragonballQueues},
    KnownVmm{"OpenVMM", kOpenvmmPrograms, kOpenvmmVcpus},
};

}  // namespace

std::span<const KnownVmm> known_vmms() { return kVmms; }

bool is_vmm_program(std::string_view name) {
  return std::ranges::any_of(kVmms, [name](const KnownVmm& vmm) {
    return std::ranges::any_of(vmm.programs,
                               [name](std::string_view known) { return name.starts_with(known); });
  });
}

}  // namespace ka::vmm
