// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/remedy.hpp"

#include "affinity/host/cgroup_names.hpp"

namespace ka::cli::noise {
namespace {

using enum Movable;

/// An unbound worker follows the mask of all of them; one of a CPU is bound
/// (kernel/workqueue.c, worker names: kworker/CPU:ID, kworker/uPOOL:ID).
Remedy for_kernel(const std::string& name, const TaskFacts& task) {
  if (name.starts_with("kworker/u")) return {kYes, "/sys/devices/virtual/workqueue/cpumask"};
  if (task.is_bound) return {kNo, "the kernel binds it to this CPU"};
  return {kYes, "its affinity mask (taskset -p)"};
}

Remedy for_task(const std::string& name, const TaskFacts* task) {
  if (task == nullptr) return {kUnknown, "it had ended before it could be read"};
  if (task->is_kernel) return for_kernel(name, *task);
  if (task->is_bound) return {kNo, "the kernel does not let it move"};
  if (!host::pod_uid_of(task->cgroup).empty())
    return {kYes, "the cpuset of its container, which kubelet writes"};
  if (task->cgroup.empty() || task->cgroup == "/") return {kYes, "its affinity mask (taskset -p)"};
  const std::string unit = host::unit_of(task->cgroup);
  return unit.empty() ? Remedy{kYes, "the cpuset of cgroup " + task->cgroup}
                      : Remedy{kYes, "AllowedCPUs= of " + unit};
}

}  // namespace

std::string_view movable_name(Movable movable) {
  if (movable == kUnknown) return "unknown";
  return movable == kYes ? "yes" : "no";
}

Remedy remedy_for(const Cause& cause, const std::string& name, const TaskFacts* task) {
  switch (cause.kind) {
    case CauseKind::kTask:
      return for_task(name, task);
    case CauseKind::kInterrupt:
      return {kUnknown, "/proc/irq/" + std::to_string(cause.id) +
                            "/smp_affinity_list, unless its driver manages it"};
    case CauseKind::kSoftirq:
      return {kNo, "it follows the interrupt, timer or task that raised it"};
    case CauseKind::kVector:
      return {kNo, "it belongs to this CPU"};
  }
  return {};
}

}  // namespace ka::cli::noise
