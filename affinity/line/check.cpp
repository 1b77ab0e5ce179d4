// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/check.hpp"

#include <algorithm>

#include "affinity/line/own_cgroup.hpp"
#include "affinity/line/sandbox.hpp"
#include "policy/plan/overrides.hpp"

namespace ka::line {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

Result<void> check_exist(const policy::CpuSet& cpus, const policy::Topology& topology) {
  const auto missing = cpus - topology.all();
  if (missing.empty()) return {};
  return fail(ErrorCode::kInvalid, "cpus: this machine has no CPU " + policy::format_list(missing) +
                                       " (it has " + policy::format_list(topology.all()) + ")");
}

Result<void> check_online(const policy::CpuSet& cpus, const policy::Topology& topology) {
  if (auto good = check_exist(cpus, topology); !good) return good;
  if (const auto offline = cpus - topology.online(); !offline.empty()) {
    return fail(ErrorCode::kInvalid, "cpus: CPU " + policy::format_list(offline) + " is offline");
  }
  return {};
}

std::string process_name(int pid) { return "vmm_pid: process " + std::to_string(pid); }

struct Checker {
  const policy::Topology& topology;
  const policy::ledger::Ledger& ledger;
  const vmm::Roots& roots;

  Result<void> operator()(const policy::ledger::PodSeen& event) const {
    const bool claims = event.vmm || !event.cgroup.empty();
    const auto good = claims ? check_own_cgroup(merged(event), ledger, roots) : Result<void>{};
    if (!good) return good;
    return event.vmm ? check_vmm(event.id, *event.vmm) : Result<void>{};
  }

  Result<void> operator()(const policy::ledger::PodGone& event) const { return known(event.id); }

  Result<void> operator()(const policy::ledger::ContainerSeen& event) const {
    if (auto good = known(event.sandbox); !good) return good;
    if (const auto missing = event.spec.mems.value_or(policy::NodeSet{}) - topology.nodes();
        !missing.empty()) {
      return fail(ErrorCode::kInvalid, "mems: this machine has no node " +
                                           policy::format_list(missing) + " (it has " +
                                           policy::format_list(topology.nodes()) + ")");
    }
    // kubelet and runtimes assign CPUs that are offline too; they are the container's when they
    // come back, and the shim proxy reports them here.
    return check_exist(event.spec.cpus.value_or(policy::CpuSet{}), topology);
  }

  Result<void> operator()(const policy::ledger::ContainerExited& event) const {
    return known(event.sandbox, event.container);
  }
  Result<void> operator()(const policy::ledger::ContainerGone& event) const {
    return known(event.sandbox, event.container);
  }
  Result<void> operator()(const policy::ledger::KubeletSeen& event) const {
    return check_exist(event.shared_pool.value_or(policy::CpuSet{}), topology);
  }
  Result<void> operator()(const policy::ledger::ResourcesSeen&) const { return {}; }
  Result<void> operator()(const policy::ledger::PreparedSeen&) const { return {}; }
  Result<void> operator()(const policy::ledger::OverrideSet& event) const {
    if (auto good = known(event.sandbox); !good) return good;
    return check_online(event.value.cpus, topology);
  }

  Result<void> known(const std::string& sandbox) const {
    if (ledger.find(sandbox) != nullptr) return {};
    return fail(ErrorCode::kNotFound, "no sandbox \"" + sandbox + '"');
  }

  Result<void> known(const std::string& sandbox, const std::string& container) const {
    if (auto good = known(sandbox); !good) return good;
    if (ledger.find(sandbox)->containers.contains(container)) return {};
    return fail(ErrorCode::kNotFound,
                "sandbox \"" + sandbox + "\" has no container \"" + container + '"');
  }

  /// What would be known of the sandbox with this event.
  policy::ledger::PodRecord merged(const policy::ledger::PodSeen& event) const {
    const policy::ledger::PodRecord* known = ledger.find(event.id);
    policy::ledger::PodRecord pod;
    pod.id = event.id;
    pod.cgroup = event.cgroup.empty() && known != nullptr ? known->cgroup : event.cgroup;
    pod.vmm = !event.vmm && known != nullptr ? known->vmm : event.vmm;
    return pod;
  }

  /// One VM is one sandbox. A state file alone is no evidence of which.
  Result<void> check_vmm(const std::string& id, const policy::ProcessId& vmm) const {
    const policy::ledger::PodRecord* holder = ledger.find_holder(vmm, id);
    if (holder == nullptr || holder->vmm_from_state) return {};
    return fail(ErrorCode::kConflict,
                process_name(vmm.pid) + " belongs to sandbox \"" + holder->id + '"');
  }
};

}  // namespace

Result<void> check_event(const policy::ledger::Event& event, const policy::Topology& topology,
                         const policy::ledger::Ledger& ledger, const vmm::Roots& roots) {
  return std::visit(Checker{topology, ledger, roots}, event.body);
}

Result<policy::ProcessId> vmm_named(const vmm::Roots& roots, int pid) {
  if (pid <= 0) return fail(ErrorCode::kInvalid, process_name(pid) + " is not a VMM");
  const auto examined = vmm::examine(roots, pid, vmm::Word::kOperator);
  if (is_gone(examined)) {
    return fail(ErrorCode::kInvalid, process_name(pid) + " does not exist");
  }
  if (!examined) {
    return fail(examined.error().code,
                process_name(pid) + " cannot be examined: " + examined.error().message);
  }
  if (!examined->is_vmm) return fail(ErrorCode::kInvalid, process_name(pid) + " is not a VMM");
  return examined->id;
}

Result<void> check_override(const policy::Override& given, const Sandbox& sandbox,
                            const policy::ledger::PodRecord& pod, const policy::Topology& topology,
                            const policy::ledger::Ledger& ledger) {
  const std::string subject = policy::plan::override_subject(given);
  if (given.cpus.empty()) {
    const bool is_given = std::ranges::any_of(pod.overrides, [&](const policy::Override& known) {
      return policy::plan::override_subject(known) == subject;
    });
    if (is_given) return {};
    return fail(ErrorCode::kNotFound, subject + " of \"" + pod.id + "\" has no manual pin");
  }
  const bool has_one = std::ranges::any_of(sandbox.threads(), [&](const ThreadView& thread) {
    return policy::plan::is_for(given, thread.facts);
  });
  if (!has_one) {
    return fail(ErrorCode::kNotFound, "sandbox \"" + pod.id + "\" has no " + subject);
  }
  const auto foreign = given.cpus & ledger.exclusive_to_others(pod.id);
  if (!foreign.empty()) {
    return fail(ErrorCode::kConflict,
                "cpus: " + policy::format_list(foreign) + " is exclusive to another pod");
  }
  const auto doubted = given.cpus & ledger.doubted_to_others(pod.id, topology.online());
  if (!doubted.empty()) {
    return fail(ErrorCode::kConflict, "cpus: " + policy::format_list(doubted) +
                                          " may be exclusive to another pod (see explain --cpu)");
  }
  const auto refused = given.cpus - sandbox.reachable_cpus().value_or(given.cpus);
  if (!refused.empty()) {
    return fail(ErrorCode::kConflict,
                "cpus: the cgroup does not allow " + policy::format_list(refused));
  }
  return {};
}

}  // namespace ka::line
