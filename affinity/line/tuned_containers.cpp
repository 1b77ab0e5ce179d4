// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/tuned_containers.hpp"

#include <iterator>
#include <set>
#include <utility>

#include "affinity/host/container_process.hpp"
#include "affinity/line/plain_pods.hpp"
#include "affinity/line/quotas.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::line {
namespace {

using policy::CpuSet;
using policy::TuningKind;
using policy::ledger::PodRecord;

/// CRI-O's cgroups of containers: crio-ID.scope, or without systemd crio-ID.
constexpr std::string_view kOfCrio = "crio-";

CpuSet dedicated_to(const Sandbox& sandbox, const std::string& container) {
  CpuSet cpus;
  if (sandbox.plan() == nullptr) return cpus;
  for (const policy::plan::VcpuPlan& vcpu : sandbox.plan()->vcpus) {
    const bool is_its_own =
        vcpu.role == policy::plan::VcpuRole::kDedicated && vcpu.container == container;
    if (is_its_own) cpus |= vcpu.cpus;
  }
  return cpus;
}

void find_in_vm(const Node& node, const Sandbox& sandbox, TunedContainer& container) {
  if (node.is_given_back(sandbox)) {
    container.obstacle = "it is released";
    return;
  }
  container.cpus = dedicated_to(sandbox, container.id);
  if (container.cpus.empty()) container.obstacle = "none of its vCPUs has a CPU of its own";
}

/// CRI-O does for containers without a VM what their annotations request.
void find_without_vm(const Node& node, const PodRecord& pod, const CpuSet& own,
                     TunedContainer& container) {
  const auto directory = node.cgroups && !pod.pod_uid.empty()
                             ? host::container_directory(*node.cgroups, pod.pod_uid, container.id)
                             : std::nullopt;
  if (node.is_given_back(pod)) {
    container.obstacle = "it is released";
  } else if (!directory) {
    container.obstacle = "its cgroup is not found";
  } else if (directory->filename().native().starts_with(kOfCrio)) {
    container.obstacle = "it has no VM, and is left to CRI-O";
  } else {
    container.cpus = own;
  }
}

void find_cpus(const Node& node, const PodRecord& pod, const CpuSet& own,
               TunedContainer& container) {
  const Sandbox* sandbox = node.sandboxes.find(pod.id);
  if (!node.options.enable) {
    container.obstacle = "enable is false, no thread is placed";
  } else if (node.options.observe) {
    container.obstacle = "mode is \"observe\", nothing is written";
  } else if (sandbox != nullptr) {
    find_in_vm(node, *sandbox, container);
  } else if (is_plain(pod)) {
    find_without_vm(node, pod, own - node.ledger().contested(), container);
  } else {
    container.obstacle = "it is not known whether it has a VM";
  }
}

const std::set<TuningKind>& allowed_to(const Node& node, const PodRecord& pod) {
  static const std::set<TuningKind> kNone;
  return node.options.quiet.tuning_by_annotation ? node.settings_for(pod).allow_tuning : kNone;
}

std::string isolation_problem(const Node& node, const TunedContainer& container) {
  if (!node.options.quiet.partitions) return "quiet_partitions is false";
  const board::PartitionView* partition = node.board.partition(container.pod);
  if (partition == nullptr) return messages::kHelperPending;
  if (!partition->problem.empty()) return partition->problem;
  return container.cpus.subset_of(partition->cpus) ? "" : messages::kHelperPending;
}

std::string interrupt_problem(const Node& node, const TunedContainer& container) {
  const board::QuietView& quiet = node.board.quiet();
  if (!quiet.trouble.empty()) {
    return "the helper (kata-affinity-helper) does not respond: " + quiet.trouble;
  }
  if (!quiet.state) return messages::kHelperPending;
  if (!quiet.state->problem.empty()) {
    return "the helper (kata-affinity-helper) can write nothing: " + quiet.state->problem;
  }
  const CpuSet lacking = container.without_interrupts - quiet.state->cpus - quiet.state->interrupts;
  if (lacking.empty()) return {};
  return "the helper (kata-affinity-helper) does not take CPUs " + policy::format_list(lacking) +
         " from the host: they are in the shared pool or its floor (quiet_floor)";
}

std::string power_problem(const Node& node, const TunedContainer& container,
                          std::string policy::PowerProblem::* of_setting) {
  const board::PowerView& power = node.board.power();
  if (!power.trouble.empty()) return power.trouble;
  if (!container.cpus.subset_of(power.cpus)) return messages::kHelperPending;
  for (const auto& [cpu, problem] : power.problems) {
    if (container.cpus.contains(cpu) && !(problem.*of_setting).empty()) return problem.*of_setting;
  }
  return {};
}

}  // namespace

std::vector<TunedContainer> tuned_containers(const Node& node, const PodRecord& pod) {
  std::vector<TunedContainer> found;
  if (!policy::requests_tuning(pod.annotations)) return found;
  for (const auto& [id, record] : pod.containers) {
    const policy::ContainerFacts& facts = record.facts;
    if (!facts.exclusive || facts.exited) continue;
    auto tuned = policy::plan::tune_container(pod.annotations, facts.name, allowed_to(node, pod));
    if (tuned.requests.empty()) continue;
    TunedContainer container{pod.id, id, facts.name, {}, {}, std::move(tuned)};
    find_cpus(node, pod, facts.cpus, container);
    container.without_interrupts = policy::plan::cpus_without_interrupts(
        node.topology, container.tuned.tuning.interrupts, facts.cpus, container.cpus);
    found.push_back(std::move(container));
  }
  return found;
}

std::vector<TunedContainer> tuned_containers(const Node& node) {
  std::vector<TunedContainer> all;
  for (const auto& [id, pod] : node.ledger().pods()) {
    auto found = tuned_containers(node, pod);
    all.insert(all.end(), std::make_move_iterator(found.begin()),
               std::make_move_iterator(found.end()));
  }
  return all;
}

std::vector<TunedContainer> containers_to_tune(const Node& node) {
  if (!node.options.quiet.tuning_by_annotation) return {};
  auto containers = tuned_containers(node);
  std::erase_if(containers, [](const TunedContainer& one) { return one.cpus.empty(); });
  return containers;
}

const CpuSet& cpus_of(const TunedContainer& container, const policy::plan::TuningRequest& request) {
  const bool is_some_of_them =
      request.kind == TuningKind::kInterrupts &&
      container.tuned.tuning.interrupts == policy::HostInterrupts::kFirstCore;
  return is_some_of_them ? container.without_interrupts : container.cpus;
}

std::string tuning_problem(const Node& node, const TunedContainer& container,
                           const policy::plan::TuningRequest& request) {
  if (request.refusal == policy::plan::TuningRefusal::kNotAllowed) {
    return "allow_annotations, or allow_crio_annotations of its handler, does not allow it";
  }
  if (request.refusal) return "there is no such value";
  if (!container.obstacle.empty()) return container.obstacle;
  const policy::CpuTuning& tuning = container.tuned.tuning;
  switch (request.kind) {
    case TuningKind::kLoadBalancing:
      return tuning.is_isolated ? isolation_problem(node, container) : std::string();
    case TuningKind::kInterrupts:
      return container.without_interrupts.empty() ? std::string()
                                                  : interrupt_problem(node, container);
    case TuningKind::kIdleStates:
      return power_problem(node, container, &policy::PowerProblem::latency);
    case TuningKind::kGovernor:
      return power_problem(node, container, &policy::PowerProblem::governor);
    case TuningKind::kQuota:
      return tuning.has_quota ? std::string() : quota_problem(node, container);
  }
  return {};
}

/// What the configuration does not allow is an administrator's will.
void collect_tuning(const Node& node, VerifyReport& report) {
  for (const TunedContainer& one : tuned_containers(node)) {
    for (const policy::plan::TuningRequest& request : one.tuned.requests) {
      const std::string problem = tuning_problem(node, one, request);
      if (problem.empty()) continue;
      Finding finding;
      finding.severity = request.refusal ? Severity::kNote : Severity::kDegraded;
      finding.invariant = "grade";
      finding.sandbox = node.sandboxes.find(one.pod) == nullptr ? std::string() : one.pod;
      finding.subject = "container " + (one.name.empty() ? one.id : one.name);
      finding.wanted = cpus_of(one, request);
      finding.text = finding.subject + ": " + std::string(policy::annotation_of(request.kind)) +
                     " = " + request.value + " is not in force: " + problem;
      finding.reason = request.refusal ? "tuning-refused" : "not-tuned";
      report.findings.push_back(std::move(finding));
    }
  }
}

}  // namespace ka::line
