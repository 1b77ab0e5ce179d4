// SPDX-License-Identifier: Apache-2.0
#include "affinity/partitions/wants.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "affinity/host/container_process.hpp"
#include "affinity/line/plain_pods.hpp"
#include "affinity/line/tuned_containers.hpp"

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

/// On these CPUs; without vCPUs where there is to be none.
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

/// Where a pod may have partitions.
struct Room {
  CpuSet cpus;
  CpuSet unbalanced;      ///< of these, those for which its annotations request it
  bool is_quiet = false;  ///< the host is kept off them, by its grade
};
/// By pod.
using Rooms = std::map<std::string, Room>;

bool is_quiet_now(const line::Node& node, const std::string& id) {
  const policy::ledger::PodRecord* pod = node.registry.find(id);
  return pod != nullptr && policy::plan::is_quiet(node.grade_for(*pod).grade);
}

Rooms rooms_of(const line::Node& node) {
  Rooms rooms;
  if (!node.options.quiet.partitions) return rooms;
  const board::QuietView& quiet = node.board.quiet();
  for (const auto& [id, obstacle] : quiet.sandboxes) {
    if (!quiet.state || !may_have_one(obstacle) || !is_quiet_now(node, id)) continue;
    rooms[id] = {quiet.state->cpus, {}, true};
  }
  for (const line::TunedContainer& one : line::containers_to_tune(node)) {
    if (!one.tuned.tuning.is_isolated) continue;
    rooms[one.pod].cpus |= one.cpus;
    rooms[one.pod].unbalanced |= one.cpus;
  }
  return rooms;
}

void add_sandbox(const line::Node& node, const std::string& id, const Room& room,
                 Candidates& found) {
  const auto view = node.view(id);
  if (!view || !view->pod.vmm || view->released || view->observed) return;
  const CpuSet others = planned_for_others(*view);
  Partition partition = partition_of(*view, room.cpus - others);
  if (partition.vcpus.empty()) {
    const bool has_dedicated = std::ranges::any_of(view->threads, [&](const auto& thread) {
      return is_dedicated(*view, thread) && thread.wanted.intersects(others);
    });
    if (has_dedicated)
      found.barred[id] = "other threads of the sandbox use its CPUs (housekeeping)";
    return;
  }
  if (room.is_quiet && view->grade && view->grade->wanted == policy::plan::Grade::kRealtime) {
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

void add_containers(const line::Node& node, const std::string& id, const Room& room,
                    Processes& known, Candidates& found) {
  const policy::ledger::PodRecord* pod = node.registry.find(id);
  if (pod == nullptr || !line::is_plain(*pod)) return;
  const CpuSet free = room.cpus - node.ledger().contested();
  for (const auto& [container, record] : pod->containers) {
    const policy::ContainerFacts& facts = record.facts;
    if (!facts.exclusive || facts.exited || !facts.cpus.subset_of(free)) continue;
    const std::string name = id + '/' + container;
    const auto entry = known.find(name);
    const auto process = entry != known.end() ? std::optional(entry->second)
                                              : process_of(node, pod->pod_uid, container);
    if (!process) continue;
    known[name] = *process;
    found.wants[name] = {.vmm = *process,
                         .cpus = facts.cpus,
                         .vcpus = {},
                         .of_container = true,
                         .is_unbalanced = facts.cpus.subset_of(room.unbalanced)};
  }
}

}  // namespace

Candidates candidates_of(const line::Node& node, Processes& known) {
  Candidates found;
  for (const auto& [id, room] : rooms_of(node)) {
    add_sandbox(node, id, room, found);
    add_containers(node, id, room, known, found);
  }
  std::erase_if(known, [&](const auto& entry) { return !found.wants.contains(entry.first); });
  return found;
}

std::string pod_of(const std::string& want) { return want.substr(0, want.find('/')); }

}  // namespace ka::partitions
