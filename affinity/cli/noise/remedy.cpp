// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/remedy.hpp"

#include <algorithm>

#include "affinity/host/cgroup_names.hpp"
#include "vmm/procfs/known_vmms.hpp"
#include "vmm/procfs/thread_names.hpp"

namespace ka::cli::noise {
namespace {

using enum Movable;

constexpr const char* kOfKataAffinity =
    "it is of a VM: kata-affinity places those of sandboxes (kata-affinityctl verify)";

/// Programs whose names the kernel cuts to 15 characters (TASK_COMM_LEN), and those that serve VMs.
constexpr std::string_view kOfVms[] = {"cloud-hyperviso", "virtiofsd", "containerd-shim"};

bool is_of_vm(std::string_view name) {
  return vmm::read_thread_name(name) || vmm::belongs_to_vm(name) || vmm::is_vmm_program(name) ||
         std::ranges::any_of(kOfVms, [name](auto known) { return name.starts_with(known); });
}

/// "irq/24-eth0", "irq/24-s-eth0" (kernel/irq/manage.c, setup_irq_thread()): it follows its
/// interrupt. Empty: it is no such thread.
std::string interrupt_of(std::string_view name) {
  constexpr std::string_view kPrefix = "irq/";
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  return std::string(name.substr(0, name.find('-')));
}

std::string file_of(const std::string& interrupt) {
  return "/proc/irq/" + interrupt + "/smp_affinity_list";
}

/// An unbound worker follows the mask of all of them; one of a CPU is bound
/// (kernel/workqueue.c, worker names: kworker/CPU:ID, kworker/uPOOL:ID).
Remedy for_kernel(const std::string& name, const TaskFacts& task) {
  if (name.starts_with("kworker/u")) return {kYes, "/sys/devices/virtual/workqueue/cpumask"};
  const std::string interrupt = interrupt_of(name);
  if (!interrupt.empty()) return {kYes, "it follows its interrupt: " + file_of(interrupt)};
  if (vmm::belongs_to_vm(name)) return {kYes, kOfKataAffinity};
  if (task.is_bound) return {kNo, "the kernel binds it to this CPU"};
  return {kYes, "its affinity mask (taskset -p)"};
}

}  // namespace

Remedy remedy_for_task(const std::string& name, const TaskFacts* task) {
  if (task == nullptr) return {kUnknown, "it had ended before it could be read"};
  if (task->is_kernel) return for_kernel(name, *task);
  if (task->is_bound) return {kNo, "the kernel does not let it move"};
  if (is_of_vm(name)) return {kYes, kOfKataAffinity};
  if (!host::pod_uid_of(task->cgroup).empty())
    return {kYes, "the cpuset of its container, which kubelet writes"};
  if (task->cgroup.empty() || task->cgroup == "/") return {kYes, "its affinity mask (taskset -p)"};
  const std::string unit = host::unit_of(task->cgroup);
  return unit.empty() ? Remedy{kYes, "the cpuset of cgroup " + task->cgroup}
                      : Remedy{kYes, "AllowedCPUs= of " + unit};
}

std::string_view movable_name(Movable movable) {
  if (movable == kUnknown) return "unknown";
  return movable == kYes ? "yes" : "no";
}

Remedy remedy_for_interrupt(int number, const std::string& name, const InterruptFacts* interrupt) {
  if (name.starts_with("vfio-")) {
    return {kNo, "its device is passed through: it stays with the VM's vCPUs"};
  }
  if (interrupt == nullptr) return {kUnknown, "it is gone"};
  const std::string now = interrupt->effective.empty()
                              ? ""
                              : "; it goes to CPU " + policy::format_list(interrupt->effective);
  const std::string file = file_of(std::to_string(number));
  if (!interrupt->is_movable) {
    return {kUnknown, file + ", unless its driver manages it" + now};
  }
  if (*interrupt->is_movable) return {kYes, file + now};
  return {kNo, "the kernel keeps it there: its driver manages it" + now};
}

Remedy remedy_for(CauseKind kind) {
  if (kind == CauseKind::kSoftirq) {
    return {kNo, "it follows the interrupt, timer or task that raised it"};
  }
  return {kNo, "it belongs to this CPU"};
}

}  // namespace ka::cli::noise
