// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/owners.hpp"

#include <algorithm>
#include <optional>

#include "affinity/host/cgroup_names.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::line {
namespace {

using messages::cpus_text;
using policy::CpuSet;
using policy::ledger::Assignment;
using policy::ledger::Basis;
using policy::ledger::ContainerRecord;
using policy::ledger::PodRecord;

std::string title(const PodRecord& pod, const std::string& container) {
  return "container " + container + " of pod " + (pod.pod_name.empty() ? pod.id : pod.pod_name);
}

Finding to_finding(const PodRecord& pod, const std::string& container, CpuSet wanted,
                   CpuSet actual) {
  return {Severity::kDegraded,
          "owners",
          pod.vmm ? pod.id : std::string(),
          "container " + container,
          std::move(wanted),
          std::move(actual),
          {},
          {},
          {}};
}

/// Of kubelet's state; empty where it has no such claim.
CpuSet claimed(const policy::ledger::Ledger& ledger, const std::string& uid,
               const std::string& container) {
  CpuSet cpus;
  for (const auto& claim : *ledger.kubelet().claims) {
    if (claim.pod_uid == uid && claim.container == container) cpus |= claim.cpus;
  }
  return cpus;
}

/// Of a pod that owns CPUs as a whole, the state file gives what is left to each container that
/// shares it, and the API names exclusive CPUs alone.
bool shares_pods_rest(const policy::ledger::Ledger& ledger, const PodRecord& pod,
                      const Assignment& assigned) {
  return assigned.cpus.empty() && !assigned.container.empty() &&
         !claimed(ledger, pod.pod_uid, {}).empty();
}

void compare_sources(const OwnersContext& context, const PodRecord& pod,
                     std::vector<Finding>& findings) {
  for (const Assignment& assigned : context.ledger.assignments().of(pod.pod_name)) {
    const CpuSet state = claimed(context.ledger, pod.pod_uid, assigned.container);
    if (state == assigned.cpus || shares_pods_rest(context.ledger, pod, assigned)) continue;
    Finding finding = to_finding(pod, assigned.container, state, assigned.cpus);
    finding.text = title(pod, assigned.container) + " owns " + cpus_text(state) +
                   " by kubelet's state file, and " + cpus_text(assigned.cpus) +
                   " by its PodResources API";
    finding.reason = "sources-disagree";
    finding.remedy = "restart kubelet: it reads its state file again";
    findings.push_back(std::move(finding));
  }
}

Finding not_compared(const std::string& why) {
  return {Severity::kNote,
          "owners",
          {},
          "PodResources",
          {},
          {},
          "kubelet's state file is not compared with its PodResources API: " + why,
          "sources-not-compared",
          {}};
}

/// What kubelet gave to a container, by whichever of its two sources counts; empty: nothing.
CpuSet given_by_kubelet(const policy::ledger::Ledger& ledger, const PodRecord& pod,
                        const ContainerRecord& container) {
  const auto ownership = ledger.ownership_of(pod, container);
  if (!ownership.exclusive || policy::is_mask(container.facts.id)) return {};
  if (ownership.basis == Basis::kKubelet) {
    return claimed(ledger, pod.pod_uid, container.facts.name);
  }
  if (ownership.basis != Basis::kPodResources) return {};
  const Assignment* assigned = ledger.assignments().find(pod.pod_name, container.facts.name);
  return assigned == nullptr ? CpuSet{} : assigned->cpus;
}

/// The cgroup of a container that is no VM's.
const host::Tenant* cgroup_of(const host::Tenants& tenants, const std::string& container) {
  const auto found = std::ranges::find_if(tenants.list, [&](const host::Tenant& tenant) {
    return host::is_of_container(tenant.directory, container);
  });
  return found == tenants.list.end() ? nullptr : &*found;
}

void compare_cpuset(const OwnersContext& context, const PodRecord& pod,
                    const ContainerRecord& container, std::vector<Finding>& findings) {
  const policy::ContainerFacts& facts = container.facts;
  const CpuSet given = given_by_kubelet(context.ledger, pod, container);
  if (facts.exited || given.empty() || !given.subset_of(context.past_grace)) return;
  const host::Tenant* cgroup = pod.vmm ? nullptr : cgroup_of(context.tenants, facts.id);
  const CpuSet& has = cgroup == nullptr ? facts.cpus : cgroup->cpus;
  if (has == given) return;
  const std::string name = facts.name.empty() ? facts.id : facts.name;
  Finding finding = to_finding(pod, name, given, has);
  finding.text = "kubelet assigned " + cpus_text(given) + " to " + title(pod, name) + ", but its " +
                 (cgroup == nullptr ? "cpuset" : "cgroup") + " has " + cpus_text(has);
  finding.reason = "cpuset-not-written";
  finding.remedy = "restart the pod: kubelet does not write it again (kubernetes#138731)";
  findings.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> evaluate_owners(const OwnersContext& context) {
  const policy::ledger::Ledger& ledger = context.ledger;
  const bool compares =
      context.is_current && !ledger.lacks_claims() && ledger.assignments().speak_of_cpus();
  std::vector<Finding> findings;
  if (!context.unanswered.empty()) findings.push_back(not_compared(context.unanswered));
  for (const auto& [id, pod] : ledger.pods()) {
    const bool is_unique = ledger.find_named(pod.pod_name) != nullptr && !pod.pod_uid.empty();
    if (compares && is_unique) compare_sources(context, pod, findings);
    for (const auto& [container_id, container] : pod.containers) {
      compare_cpuset(context, pod, container, findings);
    }
  }
  return findings;
}

}  // namespace ka::line
