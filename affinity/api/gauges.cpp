// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/gauges.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/api/quiet.hpp"
#include "affinity/board/board.hpp"
#include "affinity/line/rdt.hpp"

namespace ka::api {
namespace {

using prometheus::MetricType;

/// What is summed over all sandboxes.
struct Totals {
  std::map<std::string_view, double> threads{};   ///< by role
  std::map<std::string_view, double> warnings{};  ///< by code
  double drifted = 0;
  double unmanaged = 0;
  double released = 0;
  double unseen = 0;
  double not_realtime = 0;
  double interrupts = 0;
  double drifted_interrupts = 0;
  double unmanaged_interrupts = 0;
  double isolated = 0;
  std::map<std::string_view, double> not_isolated{};  ///< by obstacle
  std::map<std::string_view, double> classes{};       ///< asked for: "granted", or why not
  double unset_classes = 0;                           ///< values
  std::map<std::string, double> memory{};             ///< bytes by node
  double misplaced = 0;                               ///< bytes
  std::map<std::string_view, double> guests{{"placed", 0}, {"behind", 0}, {"away", 0}, {"none", 0}};
};

/// How far the containers of a sandbox are placed inside its guest.
std::string_view state_of(const board::GuestView* guest) {
  if (guest == nullptr || guest->address.empty()) return "none";
  if (!guest->connected) return "away";
  return guest->current ? "placed" : "behind";
}

void sum_memory(const policy::NodeBytes& bytes, Totals& totals) {
  for (const auto& [node, number] : bytes) {
    totals.memory[std::to_string(node)] += static_cast<double>(number);
  }
}

void sum_memory(const board::MemoryView& memory, Totals& totals) {
  for (const policy::MemoryPart& part : memory.facts.parts) sum_memory(part.placed, totals);
  sum_memory(memory.facts.bound, totals);
  totals.misplaced += static_cast<double>(memory.plan.misplaced);
}

void sum_interrupts(const line::SandboxView& view, Totals& totals) {
  totals.interrupts += static_cast<double>(view.interrupts.size());
  for (const line::InterruptView& interrupt : view.interrupts) {
    totals.drifted_interrupts += !view.released && interrupt.drifted() ? 1 : 0;
    totals.unmanaged_interrupts += interrupt.managed ? 0 : 1;
  }
}

void sum_classes(const line::SandboxView& view, Totals& totals) {
  for (const policy::plan::RequestedClass& request : view.classes.requests) {
    const bool is_unset = !line::rdt_problem(view, request).empty();
    ++totals.classes[request.refusal ? policy::plan::refusal_name(*request.refusal)
                     : is_unset      ? "unset"
                                     : "granted"];
  }
  const auto is_unset = [&view](const auto& value) { return !view.released && value.drifted(); };
  totals.unset_classes += static_cast<double>(std::ranges::count_if(view.classes.nice, is_unset));
  totals.unset_classes += is_unset(view.classes.io_weight) ? 1 : 0;
  totals.unset_classes += static_cast<double>(std::ranges::count_if(view.classes.io_max, is_unset));
  totals.unset_classes += line::count_without_rdt(view);
}

/// A container with two obstacles counts for both.
void sum_isolation(const line::SandboxView& view, Totals& totals) {
  for (const policy::plan::ContainerIsolation& container : view.isolation) {
    totals.isolated += container.isolated() ? 1 : 0;
    for (const policy::plan::NotIsolated& obstacle : container.obstacles) {
      ++totals.not_isolated[policy::plan::obstacle_name(obstacle.obstacle)];
    }
  }
}

Totals sum_up(const line::Node& node) {
  Totals totals;
  line::Ids unseen = node.unseen_pods();
  for (const policy::plan::Obstacle obstacle : policy::plan::kObstacles) {
    totals.not_isolated[policy::plan::obstacle_name(obstacle)] = 0;
  }
  totals.classes["granted"] = totals.classes["unset"] = 0;
  for (const policy::plan::ClassRefusal refusal : policy::plan::kClassRefusals) {
    totals.classes[policy::plan::refusal_name(refusal)] = 0;
  }
  for (const policy::RoleInfo& info : policy::kRoles) totals.threads[info.name] = 0;
  for (const std::string& id : node.sandbox_ids()) {
    const auto view = node.view(id);
    if (!view) continue;
    totals.released += view->released ? 1 : 0;
    if (!view->trouble.empty()) unseen.insert(id);
    totals.not_realtime += view->grade && !view->grade->not_realtime.empty() ? 1 : 0;
    if (view->memory != nullptr) sum_memory(*view->memory, totals);
    sum_interrupts(*view, totals);
    sum_isolation(*view, totals);
    sum_classes(*view, totals);
    ++totals.guests[state_of(view->guest)];
    for (const line::ThreadView& thread : view->threads) {
      ++totals.threads[policy::role_name(thread.facts.role)];
      totals.drifted += !view->released && thread.drifted() ? 1 : 0;
      totals.unmanaged += thread.managed ? 0 : 1;
    }
    for (const auto& note : view->plan.warnings)
      ++totals.warnings[policy::plan::code_name(note.code)];
  }
  totals.unseen = static_cast<double>(unseen.size());
  return totals;
}

/// 1 for each source that is connected, 0 for each that should be.
std::map<std::string_view, double> sources_up(const board::Board& board) {
  std::map<std::string_view, double> up;
  for (const auto& [source, view] : board.sources()) {
    up[policy::ledger::source_name(source)] = view.up ? 1 : 0;
  }
  return up;
}

/// Everyone who owns contested CPUs, and how many; claims on CPUs that no container holds are not.
std::map<Labels, double> contested_by_container(
    const std::vector<policy::ledger::Contest>& contests) {
  std::map<Labels, double> cpus;
  for (const policy::ledger::Contest& contest : contests) {
    for (const policy::ledger::Contender& contender : contest.contenders) {
      if (contender.is_claim) continue;
      cpus[{{"pod", contender.pod}, {"container", contender.container}}] += contest.cpus.size();
    }
  }
  return cpus;
}

void add_pods(Page& page, const line::Node& node) {
  page.gauge("kata_affinity_sandboxes", "VM sandboxes.",
             static_cast<double>(node.sandbox_ids().size()));
  page.gauge("kata_affinity_pods", "Pods of all runtimes.",
             static_cast<double>(node.ledger().pods().size()));
}

void add_threads(Page& page, const Totals& totals) {
  page.labelled(MetricType::Gauge, "kata_affinity_threads", "Threads of sandboxes, by role.",
                "role", totals.threads);
  page.gauge("kata_affinity_drifted_threads", "Threads not on their planned CPUs.", totals.drifted);
  page.gauge("kata_affinity_unmanaged_threads", "Threads that cannot be placed and are left alone.",
             totals.unmanaged);
}

void add_containers(Page& page, const Totals& totals) {
  page.gauge("kata_affinity_containers_isolated",
             "Exclusive containers of VM sandboxes with their CPUs to themselves.",
             totals.isolated);
  page.labelled(MetricType::Gauge, "kata_affinity_containers_not_isolated",
                "Exclusive containers without their CPUs to themselves, by reason.", "reason",
                totals.not_isolated);
}

void add_interrupts(Page& page, const Totals& totals) {
  page.gauge("kata_affinity_interrupts", "Interrupts of passed-through devices.",
             totals.interrupts);
  page.gauge("kata_affinity_drifted_interrupts", "Interrupts not on their planned CPUs.",
             totals.drifted_interrupts);
  page.gauge("kata_affinity_unmanaged_interrupts",
             "Interrupts that cannot be moved and are left alone.", totals.unmanaged_interrupts);
}

void add_sandbox_states(Page& page, const Totals& totals) {
  page.gauge("kata_affinity_released_sandboxes", "Sandboxes released by an operator.",
             totals.released);
  page.gauge("kata_affinity_sandboxes_unseen",
             "Sandboxes that cannot be read completely, which keep their last known state, and "
             "pods of which cannot be seen whether they have a VM.",
             totals.unseen);
  page.gauge("kata_affinity_sandboxes_not_realtime",
             "Sandboxes with grade realtime that are only quiet.", totals.not_realtime);
}

void add_classes(Page& page, const Totals& totals) {
  page.labelled(MetricType::Gauge, "kata_affinity_resource_classes",
                "Resource classes that containers ask for: granted, or why not.", "state",
                totals.classes);
  page.gauge("kata_affinity_resource_class_values_unset",
             "Nice values, block I/O weights and RDT classes that are not as a class wants them.",
             totals.unset_classes);
}

void add_guests(Page& page, const Totals& totals) {
  page.labelled(MetricType::Gauge, "kata_affinity_guests",
                "Sandboxes, by state of the guest agent.", "state", totals.guests);
}

void add_memory(Page& page, const Totals& totals) {
  page.labelled(MetricType::Gauge, "kata_affinity_memory_bytes", "Memory of VMs, by NUMA node.",
                "node", totals.memory);
  page.gauge("kata_affinity_misplaced_memory_bytes",
             "Memory of VMs on other NUMA nodes than planned.", totals.misplaced);
}

void add_warnings(Page& page, const Totals& totals) {
  page.labelled(MetricType::Gauge, "kata_affinity_plan_warnings",
                "Warnings of the plans in force, by code.", "code", totals.warnings);
}

/// 1 for each source that is read only at each drift check, 0 for each that is notified.
std::map<std::string_view, double> sources_late(const board::Board& board) {
  std::map<std::string_view, double> late;
  for (const auto& [source, view] : board.sources()) late[policy::ledger::source_name(source)] = 0;
  for (const auto& [source, why] : board.late()) late[policy::ledger::source_name(source)] = 1;
  return late;
}

void add_sources(Page& page, const board::Board& board) {
  page.labelled(MetricType::Gauge, "kata_affinity_source_up",
                "Whether each event source is connected (1) or not (0).", "source",
                sources_up(board));
  page.labelled(MetricType::Gauge, "kata_affinity_source_late",
                "Whether an event source is read only at each drift check (1) or notified of "
                "changes (0).",
                "source", sources_late(board));
}

/// Of the daemon: what it waits for after its start, and what it cannot read or write.
void add_state(Page& page, const line::Node& node) {
  page.gauge("kata_affinity_start_waiting",
             "Whether widening of masks is suspended after a start of the daemon (1) or not (0).",
             node.gate().may_widen() ? 0 : 1);
  page.gauge("kata_affinity_state_lost", "State files of an earlier daemon that cannot be read.",
             static_cast<double>(node.gate().lost().size()));
  page.gauge("kata_affinity_state_unsaved", "Sandboxes whose state cannot be written or removed.",
             static_cast<double>(node.registry.unsaved().size()));
}

void add_owners(Page& page, const line::Node& node) {
  const policy::ledger::Ledger& ledger = node.ledger();
  const auto& contests = node.registry.contests();
  page.gauge("kata_affinity_exclusive_cpus", "CPUs owned by exclusive containers.",
             ledger.exclusive().size());
  page.gauge("kata_affinity_contested_cpus", "CPUs assigned exclusively more than once.",
             cpus_of(contests).size());
  page.labelled(MetricType::Gauge, "kata_affinity_contested_container_cpus",
                "CPUs assigned exclusively to this container and to others.",
                contested_by_container(contests));
  page.gauge("kata_affinity_claims_refused",
             "Containers whose environment names claims on CPUs that are not theirs.",
             static_cast<double>(node.registry.refused().size()));
  page.gauge("kata_affinity_shared_pool_cpus", "CPUs in the shared pool.",
             ledger.shared_pool(node.topology.online()).size());
}

}  // namespace

void add_gauges(Page& page, const line::Node& node) {
  const Totals totals = sum_up(node);
  add_pods(page, node);
  add_threads(page, totals);
  add_containers(page, totals);
  add_interrupts(page, totals);
  add_sandbox_states(page, totals);
  add_classes(page, totals);
  add_guests(page, totals);
  add_memory(page, totals);
  add_warnings(page, totals);
  add_sources(page, node.board);
  add_state(page, node);
  add_owners(page, node);
  add_quiet_gauges(page, node);
}

}  // namespace ka::api
