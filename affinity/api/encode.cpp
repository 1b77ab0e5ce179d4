// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/encode.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>

#include "affinity/api/quiet.hpp"
#include "affinity/board/board.hpp"
#include "affinity/documents/memory.hpp"
#include "affinity/documents/plan.hpp"
#include "affinity/line/node.hpp"
#include "affinity/messages/contests.hpp"
#include "affinity/messages/isolation.hpp"
#include "affinity/messages/memory.hpp"
#include "base/iso_time.hpp"
#include "policy/plan/overrides.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;

json::object thread_to_json(const line::ThreadView& thread, bool drifted, bool by_hand) {
  const policy::ThreadFacts& facts = thread.facts;
  json::object object{{"tid", facts.key.tid},
                      {"pid", facts.key.pid},
                      {"start_time", facts.key.start_time},
                      {"role", policy::role_name(facts.role)},
                      {"name", facts.name},
                      {"wanted", policy::format_list(thread.wanted)},
                      {"actual", policy::format_list(thread.actual)},
                      {"managed", thread.managed},
                      {"seen", thread.seen},
                      {"drift", drifted},
                      {"by_hand", by_hand}};
  if (facts.role == policy::Role::kVcpu) object["vcpu"] = facts.vcpu_index;
  if (!thread.problem.empty()) object["problem"] = thread.problem;
  return object;
}

/// The plan's vCPU (an object) with what the guest sees of it.
void add_topology(json::object& vcpu, const policy::VcpuFacts& facts) {
  if (facts.apic_id) vcpu["apic_id"] = *facts.apic_id;
  vcpu["socket"] = facts.socket;
  vcpu["core"] = facts.core;
  vcpu["thread"] = facts.thread;
  vcpu["numa"] = facts.numa;
}

json::object container_to_json(const policy::ledger::ContainerRecord& record,
                               const policy::plan::SandboxPlan& plan) {
  const policy::ContainerFacts& facts = record.facts;
  json::object object{{"id", facts.id},
                      {"name", facts.name},
                      {"cpus", policy::format_list(facts.cpus)},
                      {"mems", policy::format_list(facts.mems)},
                      {"exclusive", facts.exclusive},
                      {"quota", facts.quota},
                      {"period", facts.period},
                      {"shares", facts.shares},
                      {"exited", facts.exited},
                      {"source", policy::ledger::source_name(record.source)},
                      {"vcpus", ""},
                      {"dedicated", false}};
  for (const policy::plan::ContainerPlan& planned : plan.containers) {
    if (planned.id != facts.id) continue;
    object["vcpus"] = policy::format_list(planned.vcpus);
    object["dedicated"] = planned.dedicated;
  }
  return object;
}

/// What is known of an exclusive container's isolation; null for every other one.
const policy::plan::ContainerIsolation* find_isolation(const line::SandboxView& view,
                                                       const std::string& container) {
  const auto found =
      std::ranges::find(view.isolation, container, &policy::plan::ContainerIsolation::container);
  return found == view.isolation.end() ? nullptr : &*found;
}

void add_isolation(json::object& container, const line::SandboxView& view,
                   const policy::plan::ContainerIsolation* isolation) {
  container["isolated"] = isolation == nullptr ? json::value() : isolation->isolated();
  json::array obstacles;
  if (isolation != nullptr) {
    for (const policy::plan::NotIsolated& obstacle : isolation->obstacles) {
      obstacles.push_back({{"reason", policy::plan::obstacle_name(obstacle.obstacle)},
                           {"subject", obstacle.subject},
                           {"cpus", policy::format_list(obstacle.cpus)},
                           {"text", messages::obstacle_text(obstacle)},
                           {"remedy", messages::remedy_text(obstacle, view.pod.id)}});
    }
  }
  container["obstacles"] = std::move(obstacles);
}

json::object guest_process(const policy::GuestProcess& process) {
  return {{"pid", process.pid},
          {"name", process.name},
          {"threads", process.threads},
          {"cpus", policy::format_list(process.cpus)}};
}

json::object guest_container(const policy::GuestContainerState& state) {
  json::array processes;
  for (const auto& process : state.processes) processes.push_back(guest_process(process));
  return {{"wanted", policy::format_list(state.wanted)},
          {"actual", policy::format_list(state.actual)},
          {"method", policy::guest_method_name(state.method)},
          {"problem", policy::guest_problem_name(state.problem)},
          {"threads", state.threads},
          {"outside", state.outside},
          {"quota_lifted", state.quota_lifted},
          {"processes", std::move(processes)}};
}

/// What the guest reports about a container; null where it reports nothing.
json::value guest_of(const line::SandboxView& view, const std::string& container) {
  if (view.guest == nullptr || !view.guest->report) return nullptr;
  for (const auto& state : view.guest->report->containers) {
    if (state.id == container) return guest_container(state);
  }
  return nullptr;
}

/// What was written into the guest for a container and not undone, and why it is not confirmed.
void add_guest_state(json::object& object, const line::SandboxView& view,
                     const std::string& container) {
  if (view.guest == nullptr) return;
  const auto doubt = view.guest->doubts.find(container);
  if (doubt != view.guest->doubts.end()) {
    object["guest_doubt"] = policy::guest_doubt_name(doubt->second);
  }
  const auto& writes = view.guest->writes;
  const auto cpus = writes.containers.find(container);
  if (cpus == writes.containers.end()) return;
  object["guest_told"] = {
      {"by", writes.by_kata ? "kata-agent" : "agent"},
      {writes.by_kata ? "cpus" : "apic_ids", policy::format_list(cpus->second)}};
}

/// The guest's number of a vCPU; absent if it is not online there, or not known.
std::optional<int> guest_cpu(const line::SandboxView& view, const policy::VcpuFacts& vcpu) {
  if (view.guest == nullptr || !view.guest->report || !vcpu.apic_id) return std::nullopt;
  for (const policy::GuestCpu& cpu : view.guest->report->cpus) {
    if (cpu.online && cpu.hardware_id == static_cast<std::uint64_t>(*vcpu.apic_id)) {
      return cpu.number;
    }
  }
  return std::nullopt;
}

json::value guest_to_json(const board::GuestView* guest) {
  if (guest == nullptr) return nullptr;
  json::object object{{"address", guest->address},
                      {"connected", guest->connected},
                      {"text", guest->text},
                      {"current", guest->current}};
  if (guest->reaction.count() > 0) {
    object["reaction_seconds"] = std::chrono::duration<double>(guest->reaction).count();
  }
  if (!guest->report) return object;
  object["common"] = policy::format_list(guest->report->common);
  object["interrupts_moved"] = guest->report->interrupts_moved;
  object["interrupts_stuck"] = guest->report->interrupts_stuck;
  object["kernel_threads_moved"] = guest->report->kernel_threads_moved;
  object["kernel_threads_stuck"] = guest->report->kernel_threads_stuck;
  object["services_moved"] = guest->report->services_moved;
  object["idle"] = policy::guest_idle_name(guest->report->idle);
  return object;
}

json::array codes(const std::vector<policy::plan::Note>& notes) {
  json::array array;
  for (const policy::plan::Note& note : notes)
    array.emplace_back(policy::plan::code_name(note.code));
  return array;
}

json::array strings(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

void add_vcpus(json::object& sandbox, const line::SandboxView& view) {
  json::array& vcpus = sandbox["vcpus"].as_array();
  for (json::value& vcpu : vcpus) {
    for (const policy::VcpuFacts& facts : view.vcpus) {
      if (vcpu.as_object()["index"] != facts.index) continue;
      add_topology(vcpu.as_object(), facts);
      if (const auto number = guest_cpu(view, facts)) vcpu.as_object()["guest_cpu"] = *number;
    }
  }
}

void add_threads(json::object& sandbox, const line::SandboxView& view) {
  json::array threads;
  int drift = 0;
  for (const line::ThreadView& thread : view.threads) {
    const bool drifted = !view.released && thread.drifted();
    const bool by_hand = std::ranges::any_of(view.pod.overrides, [&](const auto& given) {
      return policy::plan::is_for(given, thread.facts);
    });
    threads.push_back(thread_to_json(thread, drifted, by_hand));
    drift += drifted ? 1 : 0;
  }
  sandbox["threads"] = std::move(threads);
  sandbox["drift"] = drift;
}

void add_containers(json::object& sandbox, const line::SandboxView& view) {
  json::array containers;
  for (const auto& [id, record] : view.pod.containers) {
    json::object container = container_to_json(record, view.plan);
    container["guest"] = guest_of(view, id);
    add_guest_state(container, view, id);
    add_isolation(container, view, find_isolation(view, id));
    containers.push_back(std::move(container));
  }
  sandbox["containers"] = std::move(containers);
}

/// `now`: seconds of the monotonic clock.
json::object override_to_json(const policy::ledger::Pin& given, std::int64_t now) {
  json::object object{
      {"thread", policy::plan::override_subject(given)},
      {"role", policy::role_name(given.role)},
      {"cpus", policy::format_list(given.cpus)},
      {"pid", given.pid},
      {"since",
       base::iso_time(std::chrono::system_clock::time_point(std::chrono::seconds(given.since)))}};
  object["uid"] = given.uid ? json::value(*given.uid) : json::value();
  object["expires_in"] =
      given.until ? json::value(std::max<std::int64_t>(0, *given.until - now)) : json::value();
  return object;
}

json::array overrides_to_json(const line::SandboxView& view) {
  json::array array;
  for (const policy::ledger::Pin& given : view.pod.overrides) {
    array.push_back(override_to_json(given, view.now));
  }
  return array;
}

json::value memory_to_json(const line::SandboxView& view) {
  const board::MemoryView* memory = view.memory;
  if (memory == nullptr) return nullptr;
  json::object object = documents::to_json(memory->facts, memory->plan);
  object["text"] = messages::sentence(memory->plan, view.moves_memory());
  object["migrate"] = view.moves_memory();
  object["moving"] = memory->moving;
  object["moved"] = memory->moved;
  object["failed"] = memory->failed;
  object["problem"] = memory->problem;
  return object;
}

json::object interrupt_to_json(const line::InterruptView& interrupt, bool drifted) {
  json::object object{{"number", interrupt.facts.number},
                      {"name", interrupt.facts.name},
                      {"wanted", policy::format_list(interrupt.wanted)},
                      {"actual", policy::format_list(interrupt.facts.cpus)},
                      {"managed", interrupt.managed},
                      {"drift", drifted}};
  if (!interrupt.problem.empty()) object["problem"] = interrupt.problem;
  return object;
}

/// Passed-through devices, each with its interrupts.
void add_devices(json::object& sandbox, const line::SandboxView& view) {
  json::array devices;
  int drift = 0;
  for (const policy::DeviceFacts& device : view.devices) {
    json::array interrupts;
    for (const line::InterruptView& interrupt : view.interrupts) {
      if (interrupt.facts.device != device.id) continue;
      const bool drifted = !view.released && interrupt.drifted();
      interrupts.push_back(interrupt_to_json(interrupt, drifted));
      drift += drifted ? 1 : 0;
    }
    json::object object{{"id", device.id}, {"interrupts", std::move(interrupts)}};
    if (device.node >= 0) object["numa"] = device.node;
    devices.push_back(std::move(object));
  }
  sandbox["devices"] = std::move(devices);
  sandbox["interrupt_drift"] = drift;
}

json::object extents_to_json(const line::Extents& extents) {
  return {{"sandboxes", extents.sandboxes}, {"threads", extents.threads}};
}

json::object finding_to_json(const line::Finding& finding) {
  json::object object{{"severity", line::severity_name(finding.severity)},
                      {"invariant", finding.invariant},
                      {"sandbox", finding.sandbox},
                      {"subject", finding.subject},
                      {"wanted", policy::format_list(finding.wanted)},
                      {"actual", policy::format_list(finding.actual)},
                      {"text", finding.text}};
  if (!finding.reason.empty()) object["reason"] = finding.reason;
  if (!finding.remedy.empty()) object["remedy"] = finding.remedy;
  return object;
}

}  // namespace

json::object to_json(const line::SandboxView& view) {
  json::object sandbox = documents::to_json(view.plan);
  sandbox["id"] = view.pod.id;
  sandbox["pod_uid"] = view.pod.pod_uid;
  sandbox["pod_name"] = view.pod.pod_name;
  sandbox["handler"] = view.pod.handler;
  sandbox["vmm_pid"] = view.pod.vmm ? view.pod.vmm->pid : 0;
  if (!view.pod.domain.empty()) sandbox["domain"] = view.pod.domain;
  sandbox["source"] = policy::ledger::source_name(view.pod.source);
  sandbox["cgroup"] = view.cgroup;
  sandbox["cgroup_cpus"] =
      view.cgroup_cpus ? json::value(policy::format_list(*view.cgroup_cpus)) : json::value();
  sandbox["cgroup_managed"] = view.cgroup_managed;
  sandbox["cgroup_theirs"] =
      view.cgroup_theirs ? json::value(policy::format_list(*view.cgroup_theirs)) : json::value();
  sandbox["cgroup_problem"] = view.cgroup_problem;
  add_grade(sandbox, view);
  sandbox["seen"] = view.trouble.empty();
  sandbox["trouble"] = view.trouble;
  sandbox["vcpu_source"] = view.vcpu_source;
  sandbox["released"] = view.released;
  sandbox["observed"] = view.observed;
  sandbox["guest"] = guest_to_json(view.guest);
  sandbox["overrides"] = overrides_to_json(view);
  sandbox["memory"] = memory_to_json(view);
  sandbox["classes"] = classes_to_json(view);
  add_vcpus(sandbox, view);
  add_threads(sandbox, view);
  add_devices(sandbox, view);
  add_containers(sandbox, view);
  sandbox["reason_codes"] = codes(view.plan.reasons);
  sandbox["warning_codes"] = codes(view.plan.warnings);
  sandbox["conflicts"] = strings(view.conflicts);
  sandbox["unknown_threads"] = strings(view.unknown);
  sandbox["foreign_processes"] = strings(view.foreign);
  return sandbox;
}

json::object to_json(const board::Outcome& outcome) {
  return {{"planned", outcome.planned},
          {"writes", outcome.writes},
          {"failed", outcome.failed},
          {"interrupts", outcome.interrupts},
          {"seconds", std::chrono::duration<double>(outcome.duration).count()}};
}

json::object to_json(const line::VerifyReport& report) {
  json::array findings;
  for (const auto& finding : report.findings) findings.push_back(finding_to_json(finding));
  return {{"verdict", line::verdict_name(report.verdict())},
          {"ok", report.ok()},
          {"seen", extents_to_json(report.seen)},
          {"known", extents_to_json(report.known)},
          {"sandboxes", report.seen.sandboxes},
          {"released", report.released},
          {"threads", report.seen.threads},
          {"interrupts", report.interrupts},
          {"findings", std::move(findings)}};
}

json::array contests_to_json(const line::Node& node) {
  json::array contests;
  for (const policy::ledger::Contest& contest : node.registry.contests()) {
    contests.push_back(
        {{"cpus", policy::format_list(contest.cpus)}, {"text", messages::sentence(contest)}});
  }
  return contests;
}

json::object to_json(const board::Notification& notification) {
  return {{"sequence", notification.sequence},
          {"time", base::iso_time(notification.time)},
          {"kind", board::kind_name(notification.kind)},
          {"sandbox", notification.sandbox},
          {"container", notification.container},
          {"reason", notification.reason},
          {"text", notification.text}};
}

}  // namespace ka::api
