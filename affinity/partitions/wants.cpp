// SPDX-License-Identifier: Apache-2.0
#include "affinity/partitions/wants.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "affinity/host/container_process.hpp"

namespace ka::partitions {
namespace {

using policy::CpuSet;
using policy::Partition;
using policy::plan::NotQuiet;
using policy::plan::VcpuPlan;

/// Whether a sandbox of this verdict is quiet, or will be by a partition: then it is of no account
/// what else could run there.
bool may_have_one(const std::optional<policy::plan::QuietObstacle>& obstacle) {
  if (!obstacle) return true;
  const NotQuiet reason = obstacle->reason;
  return reason == NotQuiet::kPending || reason == NotQuiet::kUnseen ||
         reason == NotQuiet::kUnitLeft;
}

/// Null: it is no thread of a dedicated vCPU.
const VcpuPlan* dedicated_plan(const line::SandboxView& view, const line::ThreadView& thread) {
  if (thread.facts.role != policy::Role::kVcpu) return nullptr;
  const VcpuPlan* vcpu = view.plan.find_vcpu(thread.facts.vcpu_index);
  const bool is_one =
      vcpu != nullptr && vcpu->placed && vcpu->role == policy::plan::VcpuRole::kDedicated;
  return is_one ? vcpu : nullptr;
}

bool is_dedicated(const line::SandboxView& view, const line::ThreadView& thread) {
  return dedicated_plan(view, thread) != nullptr;
}

/// Outside the partition they would have none of these CPUs.
CpuSet planned_for_others(const line::SandboxView& view) {
  CpuSet cpus;
  for (const line::ThreadView& thread : view.threads) {
    if (!is_dedicated(view, thread)) cpus |= thread.wanted;
  }
  return cpus;
}

/// Without vCPUs where there is to be none.
Partition partition_of(const line::SandboxView& view, const CpuSet& free) {
  const policy::ProcessId vmm = *view.pod.vmm;
  Partition partition;
  partition.vmm = {vmm.pid, vmm.pid, vmm.start_time};
  for (const line::ThreadView& thread : view.threads) {
    const VcpuPlan* vcpu = dedicated_plan(view, thread);
    if (vcpu == nullptr || thread.facts.key.pid != vmm.pid) continue;
    if (!vcpu->cpus.subset_of(free)) continue;
    partition.cpus |= vcpu->cpus;
    partition.vcpus.push_back(thread.facts.key);
  }
  return partition;
}

void add(const line::Node& node, const std::string& id, const CpuSet& held, Candidates& found) {
  const auto view = node.view(id);
  if (!view || !view->grade || !view->pod.vmm || view->released || view->observed) return;
  const CpuSet others = planned_for_others(*view);
  Partition partition = partition_of(*view, held - others);
  if (partition.vcpus.empty()) {
    const bool has_dedicated = std::ranges::any_of(view->threads, [&](const auto& thread) {
      return is_dedicated(*view, thread) && thread.wanted.intersects(others);
    });
    if (has_dedicated)
      found.barred[id] = "other threads of the sandbox use its CPUs (housekeeping)";
    return;
  }
  if (view->grade->wanted == policy::plan::Grade::kRealtime) {
    partition.priority = node.options.quiet.realtime_priority;
    partition.full_power = node.options.quiet.realtime_full_power;
  }
  found.wants[id] = std::move(partition);
}

/// Absent: it has none yet.
std::optional<policy::ThreadKey> process_of(const line::Node& node, const std::string& pod_uid,
                                            const std::string& container) {
  if (!node.cgroups || node.cgroups->version() != 2) return std::nullopt;
  const auto process = host::container_process(*node.cgroups, node.proc, pod_uid, container);
  return process ? std::optional(*process) : std::nullopt;
}

void add_containers(const line::Node& node, const std::string& id, const CpuSet& held,
                    Processes& known, Candidates& found) {
  const policy::ledger::PodRecord* pod = node.find_quiet_pod(id);
  if (pod == nullptr) return;
  const CpuSet free = held - node.ledger().contested();
  for (const auto& [container, record] : pod->containers) {
    const policy::ContainerFacts& facts = record.facts;
    if (!facts.exclusive || facts.exited || !facts.cpus.subset_of(free)) continue;
    const std::string name = id + '/' + container;
    const auto entry = known.find(name);
    const auto process = entry != known.end() ? std::optional(entry->second)
                                              : process_of(node, pod->pod_uid, container);
    if (!process) continue;
    known[name] = *process;
    found.wants[name] = {.vmm = *process, .cpus = facts.cpus, .vcpus = {}, .of_container = true};
  }
}

}  // namespace

Candidates candidates_of(const line::Node& node, Processes& known) {
  Candidates found;
  const board::QuietView& quiet = node.board.quiet();
  if (quiet.state && node.options.quiet.partitions) {
    for (const auto& [id, obstacle] : quiet.sandboxes) {
      if (!may_have_one(obstacle)) continue;
      add(node, id, quiet.state->cpus, found);
      add_containers(node, id, quiet.state->cpus, known, found);
    }
  }
  std::erase_if(known, [&](const auto& entry) { return !found.wants.contains(entry.first); });
  return found;
}

std::string pod_of(const std::string& want) { return want.substr(0, want.find('/')); }

}  // namespace ka::partitions
