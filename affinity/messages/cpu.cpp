// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/cpu.hpp"

#include <string_view>

#include "affinity/messages/terms.hpp"

namespace ka::messages {
namespace {

constexpr std::string_view kNoOwners = "does not say who owns CPUs";

const std::string& first_known(const std::string& preferred, const std::string& other) {
  return preferred.empty() ? other : preferred;
}

/// "container app of pod u1"; empty names stand for the pod as a whole, or for an unknown pod.
std::string bearer(const std::string& container, const std::string& pod) {
  if (container.empty()) return "pod " + pod + " as a whole";
  return "container " + container + (pod.empty() ? "" : " of pod " + pod);
}

std::string listed(std::string text, const std::string& next) {
  return text.empty() ? next : text + ", " + next;
}

std::string assigned_to(int cpu, const std::string& bearers) {
  return cpus_are({cpu}) + " assigned to " + bearers;
}

std::string claims_text(const policy::ledger::KubeletSeen& seen, int cpu) {
  std::string bearers;
  for (const policy::ledger::Claim& claim : *seen.claims) {
    if (claim.cpus.contains(cpu)) bearers = listed(bearers, bearer(claim.container, claim.pod_uid));
  }
  if (!bearers.empty()) return assigned_to(cpu, bearers);
  if (!seen.shared_pool) return cpus_are({cpu}) + " not assigned";
  return cpus_are({cpu}) + (seen.shared_pool->contains(cpu)
                                ? " in the shared pool"
                                : " neither assigned nor in the shared pool");
}

}  // namespace

std::string container_of_pod(const policy::ledger::PodRecord& pod,
                             const policy::ContainerFacts& container) {
  return bearer(first_known(container.name, container.id),
                first_known(pod.pod_name, first_known(pod.pod_uid, pod.id)));
}

std::string report_text(const policy::ledger::PodRecord& pod,
                        const policy::ContainerFacts& container, const policy::CpuSet& cpus,
                        std::optional<bool> exclusive) {
  std::string text = container_of_pod(pod, container) + " may use " +
                     (cpus.empty() ? std::string("any CPU") : cpus_text(cpus));
  if (exclusive) text += *exclusive ? " and owns them" : " and shares them";
  return text;
}

std::string claim_text(const policy::ledger::Claim& claim) {
  return bearer(claim.container, claim.pod_uid);
}

std::string kubelet_text(const policy::ledger::KubeletSeen& seen, int cpu) {
  if (!seen.claims) return std::string(kNoOwners);
  return claims_text(seen, cpu) + (seen.outdated ? "; its file cannot be read any more" : "");
}

std::string resources_text(const policy::ledger::ResourcesSeen& seen, int cpu) {
  if (seen.allocatable.empty()) return std::string(kNoOwners);
  std::string bearers;
  for (const policy::ledger::Assignment& one : seen.assignments) {
    if (one.cpus.contains(cpu)) bearers = listed(bearers, bearer(one.container, one.pod));
  }
  if (!bearers.empty()) return assigned_to(cpu, bearers);
  return cpus_are({cpu}) + (seen.allocatable.contains(cpu) ? " assigned to no container"
                                                           : " not one that is assigned");
}

std::string prepared_text(const policy::ledger::Prepared& prepared, int cpu) {
  std::string claims;
  for (const policy::ledger::PreparedClaim& claim : prepared.claims()) {
    if (claim.cpus.contains(cpu)) claims = listed(claims, "ResourceClaim " + claim.uid);
  }
  return cpus_are({cpu}) + (claims.empty() ? " in no prepared claim" : " prepared for " + claims);
}

}  // namespace ka::messages
