// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/claims.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "affinity/messages/claims.hpp"
#include "affinity/messages/cpu.hpp"

namespace ka::line {
namespace {

using policy::CpuSet;
using policy::ledger::Assignment;
using policy::ledger::ContainerRecord;
using policy::ledger::Ledger;
using policy::ledger::PodRecord;

Finding to_finding(const PodRecord& pod, const ContainerRecord& container) {
  const policy::ContainerFacts& facts = container.facts;
  Finding finding{Severity::kDegraded,
                  "owners",
                  pod.vmm ? pod.id : std::string(),
                  "container " + (facts.name.empty() ? facts.id : facts.name),
                  {},
                  facts.cpus,
                  {},
                  {},
                  {}};
  for (const auto& claim : container.claims) finding.wanted |= claim.cpus;
  return finding;
}

std::vector<std::string> uids_of(const ContainerRecord& container) {
  std::vector<std::string> uids;
  for (const auto& claim : container.claims) uids.push_back(claim.uid);
  std::ranges::sort(uids);
  return uids;
}

std::string listed(const std::vector<std::string>& uids) {
  std::string text;
  for (const std::string& uid : uids) text += (text.empty() ? "" : ", ") + uid;
  return text.empty() ? "no claim" : text;
}

/// kubelet before 1.34, or without its gate, lists no claims: that proves nothing.
bool lists_claims(const Ledger& ledger) {
  return std::ranges::any_of(ledger.assignments().seen().assignments,
                             [](const Assignment& one) { return !one.claims.empty(); });
}

void add_refused(const Ledger& ledger, std::vector<Finding>& findings) {
  for (const auto& refused : policy::ledger::refused_claims(ledger)) {
    const PodRecord& pod = *ledger.find(refused.sandbox);
    Finding finding = to_finding(pod, pod.containers.at(refused.container));
    finding.text = messages::sentence(ledger, refused);
    finding.reason = "claim-refused";
    finding.remedy =
        "a pod must not set DRA_CPUSET_ variables; if it does not, restart it while dra-driver-cpu "
        "runs";
    findings.push_back(std::move(finding));
  }
}

void compare(const Ledger& ledger, const PodRecord& pod, std::vector<Finding>& findings) {
  for (const auto& [id, container] : pod.containers) {
    const Assignment* assigned = ledger.assignments().find(pod.pod_name, container.facts.name);
    if (assigned == nullptr || container.facts.exited || container.facts.name.empty()) continue;
    const auto named = uids_of(container);
    if (named == assigned->claims) continue;
    Finding finding = to_finding(pod, container);
    finding.text = messages::container_of_pod(pod, container.facts) + " has " + listed(named) +
                   " by its environment, and " + listed(assigned->claims) +
                   " by kubelet's PodResources API";
    finding.reason = "claims-disagree";
    finding.remedy = "restart the pod while dra-driver-cpu runs";
    findings.push_back(std::move(finding));
  }
}

}  // namespace

std::vector<Finding> evaluate_claims(const Ledger& ledger, bool is_current) {
  std::vector<Finding> findings;
  add_refused(ledger, findings);
  if (!is_current || !lists_claims(ledger)) return findings;
  for (const auto& [id, pod] : ledger.pods()) {
    if (ledger.find_named(pod.pod_name) != nullptr) compare(ledger, pod, findings);
  }
  return findings;
}

}  // namespace ka::line
