// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/explain.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <utility>

#include "affinity/api/encode.hpp"
#include "affinity/api/placement.hpp"
#include "affinity/board/board.hpp"
#include "affinity/documents/settings.hpp"
#include "affinity/line/node.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/messages/isolation.hpp"
#include "affinity/messages/memory.hpp"
#include "affinity/messages/notes.hpp"
#include "affinity/messages/ownership.hpp"
#include "affinity/messages/placement.hpp"
#include "affinity/messages/terms.hpp"
#include "policy/plan/overrides.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;
using messages::cpus_text;
using policy::CpuSet;

class Facts {
 public:
  void add(std::string_view text, std::string_view source) {
    facts_.push_back({{"text", text}, {"source", source}});
  }
  json::array release() { return std::move(facts_); }

 private:
  json::array facts_;
};

void add_sandbox_facts(Facts& facts, const line::SandboxView& view) {
  if (view.pod.vmm) {
    facts.add("VMM is process " + std::to_string(view.pod.vmm->pid),
              policy::ledger::source_name(view.pod.source));
  }
  policy::VcpuSet vcpus;
  for (const policy::VcpuFacts& vcpu : view.vcpus) vcpus.add(vcpu.index);
  facts.add(vcpus.empty() ? "no vCPU is known" : "VM has vCPUs " + policy::format_list(vcpus),
            view.vcpu_source);
  for (const std::string& conflict : view.conflicts) facts.add(conflict, "cross-check");
  for (const auto& [id, record] : view.pod.containers) {
    facts.add(messages::sentence(record.facts), policy::ledger::source_name(record.source));
  }
  for (const policy::ledger::Pin& given : view.pod.overrides) {
    facts.add(policy::plan::override_subject(given) + " is pinned to " + cpus_text(given.cpus),
              "manual pin");
  }
  if (view.cgroup_cpus) {
    facts.add("cgroup " + view.cgroup + " allows " + cpus_text(*view.cgroup_cpus), "cgroup");
  }
  if (view.cgroup_theirs) {
    facts.add("another program last set the cgroup to " +
                  (view.cgroup_theirs->empty() ? "all CPUs" : cpus_text(*view.cgroup_theirs)),
              "cgroup");
  }
  if (!view.cgroup_problem.empty()) {
    facts.add("cgroup not managed: " + view.cgroup_problem, "cgroup");
  }
  if (view.memory != nullptr && view.memory->problem.empty()) {
    facts.add("memory: " + messages::memory_text(view.memory->facts), "numa_maps");
    if (!view.memory->facts.device.empty()) {
      facts.add(view.memory->facts.device + " is passed through", "fd");
    }
  }
}

/// Of each container with a cpuset: whether it owns that, and how it is known.
void add_ownership_facts(Facts& facts, const policy::ledger::Ledger& ledger,
                         const policy::ledger::PodRecord& pod) {
  for (const auto& [id, record] : pod.containers) {
    if (record.facts.cpus.empty()) continue;
    const policy::ledger::Ownership ownership = ledger.ownership_of(pod, record);
    facts.add(messages::sentence(record.facts, ownership),
              policy::ledger::basis_name(ownership.basis));
  }
}

/// By PodResources, where its name stands for this pod alone.
void add_assigned_devices(Facts& facts, const policy::ledger::Ledger& ledger,
                          const policy::ledger::PodRecord& pod) {
  if (ledger.find_named(pod.pod_name) == nullptr) return;
  for (const auto& assignment : ledger.assignments().of(pod.pod_name)) {
    for (const auto& devices : assignment.devices) {
      facts.add(messages::sentence(assignment, devices), "pod-resources");
    }
  }
}

void add_device_facts(Facts& facts, const line::SandboxView& view) {
  for (const policy::DeviceFacts& device : view.devices) {
    const auto number = std::ranges::count_if(
        view.interrupts,
        [&](const line::InterruptView& interrupt) { return interrupt.facts.device == device.id; });
    facts.add("device " + device.id +
                  (device.node < 0 ? "" : " of node " + std::to_string(device.node)) +
                  " is passed through, with " + messages::counted(number, "interrupt"),
              "vfio");
  }
}

void add_guest_facts(Facts& facts, const line::SandboxView& view) {
  if (view.guest == nullptr) return;
  const board::GuestView& guest = *view.guest;
  facts.add(guest.connected ? "guest containers are placed through " + guest.address
                            : "guest containers are not placed: " + guest.text,
            guest.connected ? guest.text : guest.address);
  if (!guest.report) return;
  policy::GuestCpuSet online;
  for (const policy::GuestCpu& cpu : guest.report->cpus) {
    if (cpu.online) online.add(cpu.number);
  }
  if (!guest.current) facts.add(std::string(messages::kGuestPending), "guest");
  facts.add("guest CPUs " + policy::format_list(online) + " are online", "guest");
}

void add_guest_results(json::array& results, const line::SandboxView& view) {
  if (view.guest == nullptr || !view.guest->report) return;
  for (const auto& state : view.guest->report->containers) {
    results.emplace_back(messages::sentence(state));
  }
}

void add_node_facts(Facts& facts, const line::Node& node, const line::SandboxView& view) {
  const policy::ledger::Ledger& ledger = node.ledger();
  const CpuSet others = ledger.exclusive_to_others(view.pod.id);
  if (!others.empty()) {
    facts.add(
        cpus_text(others) + (others.size() == 1 ? " is" : " are") + " exclusive to other pods",
        "ledger");
  }
  if (const CpuSet doubted = ledger.doubted_to_others(view.pod.id, node.topology.online());
      !doubted.empty()) {
    facts.add(cpus_text(doubted) + " may be exclusive to other pods: no source decides", "ledger");
  }
  facts.add("the node's shared pool is " + cpus_text(ledger.shared_pool(node.topology.online())),
            ledger.reported_shared_pool() ? "kubelet" : "CPUs without an exclusive owner");
}

void add_source_facts(Facts& facts, const board::Board& board) {
  for (const auto& [source, view] : board.sources()) {
    facts.add((view.up ? "up: " : "down: ") + view.text, policy::ledger::source_name(source));
  }
}

void add_setting_facts(Facts& facts, const line::Options& options,
                       const policy::plan::Settings& settings) {
  constexpr std::string_view kSource = "configuration";
  facts.add(
      "vcpu_pinning is \"" + std::string(documents::vcpu_pinning_name(settings.vcpu_pinning)) + '"',
      kSource);
  facts.add("housekeeping is \"" + documents::housekeeping_text(settings.housekeeping) + '"',
            kSource);
  for (const auto& [role, housekeeping] : settings.housekeeping_by_role) {
    facts.add(std::string(policy::role_name(role)) + " is \"" +
                  documents::housekeeping_text(housekeeping) + '"',
              kSource);
  }
  facts.add(std::string("cgroup is \"") + (settings.manage_cgroup ? "manage" : "obey") + '"',
            kSource);
  facts.add(std::string("memory is \"") + (settings.move_memory ? "migrate" : "follow") + '"',
            kSource);
  for (const json::value& inert : inert_settings(options)) {
    facts.add(std::string(inert.as_string()), kSource);
  }
}

json::array notes_to_json(const std::vector<policy::plan::Note>& notes) {
  json::array array;
  for (const policy::plan::Note& note : notes) {
    array.push_back({{"code", policy::plan::code_name(note.code)},
                     {"text", messages::sentence(note)},
                     {"subject", note.subject},
                     {"cpus", policy::format_list(note.cpus)}});
  }
  return array;
}

/// "interrupts of 0000:01:00.0 are planned on CPUs 2-3, where the vCPUs that receive them run", one
/// sentence for each that goes elsewhere.
void add_interrupt_results(json::array& results, const line::SandboxView& view) {
  for (const auto& [device, cpus] : view.plan.interrupts) {
    results.emplace_back("interrupts of " + device + " are planned on " + cpus_text(cpus) +
                         ", where the vCPUs that receive them run");
  }
  for (const line::InterruptView& interrupt : view.interrupts) {
    if (interrupt.drifted()) {
      results.emplace_back(interrupt.name() + " is routed to " + cpus_text(interrupt.facts.cpus) +
                           " instead of " + cpus_text(interrupt.wanted));
    }
    if (interrupt.problem.empty()) continue;
    results.emplace_back(interrupt.name() + ": " + interrupt.problem);
  }
}

void add_memory_result(json::array& results, const line::SandboxView& view) {
  if (view.memory == nullptr) return;
  const board::MemoryView& memory = *view.memory;
  if (!memory.problem.empty()) {
    results.emplace_back("memory: " + memory.problem);
  } else {
    results.emplace_back("memory: " + messages::sentence(memory.plan, view.moves_memory()));
  }
}

json::array results_of(const line::Node& node, const line::SandboxView& view) {
  json::array results;
  if (auto waiting = messages::waiting_text(node.gate()); !waiting.empty()) {
    results.emplace_back(std::move(waiting));
  }
  if (view.released) {
    results.emplace_back("released: no thread is placed");
    return results;
  }
  if (view.observed) {
    results.emplace_back("mode is \"observe\": the plan below is not applied");
  }
  for (const policy::plan::ContainerIsolation& container : view.isolation) {
    results.emplace_back(messages::isolation_text(container));
  }
  const AboutCpus all = [](const CpuSet&) { return true; };
  add_vcpu_results(results, view, all);
  add_thread_results(results, view, all);
  add_interrupt_results(results, view);
  add_guest_results(results, view);
  add_memory_result(results, view);
  return results;
}

}  // namespace

json::object explain(const line::Node& node, const line::SandboxView& view) {
  Facts facts;
  add_sandbox_facts(facts, view);
  add_ownership_facts(facts, node.ledger(), view.pod);
  add_assigned_devices(facts, node.ledger(), view.pod);
  add_device_facts(facts, view);
  add_guest_facts(facts, view);
  add_node_facts(facts, node, view);
  add_source_facts(facts, node.board);
  add_setting_facts(facts, node.options, view.settings);
  return {{"id", view.pod.id},
          {"facts", facts.release()},
          {"rules", notes_to_json(view.plan.reasons)},
          {"results", results_of(node, view)},
          {"warnings", notes_to_json(view.plan.warnings)}};
}

}  // namespace ka::api
