// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/claims.hpp"

#include <algorithm>

#include "affinity/messages/cpu.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::messages {
namespace {

using policy::ledger::ContainerRecord;
using policy::ledger::Prepared;
using policy::ledger::PreparedClaim;

/// Absent: each entry is right.
std::string wrong_entry(const Prepared& prepared, const ContainerRecord& container) {
  const auto wrong = std::ranges::find_if(container.claims, [&](const PreparedClaim& claim) {
    const PreparedClaim* known = prepared.find(claim.uid);
    return known == nullptr || known->cpus != claim.cpus;
  });
  if (wrong == container.claims.end()) return {};
  const PreparedClaim* known = prepared.find(wrong->uid);
  return " names ResourceClaim " + wrong->uid + " with " + cpus_text(wrong->cpus) +
         " in its environment, which is " +
         (known == nullptr ? "not prepared" : "prepared with " + cpus_text(known->cpus));
}

std::string not_applied(const ContainerRecord& container) {
  policy::CpuSet claimed;
  for (const PreparedClaim& claim : container.claims) claimed |= claim.cpus;
  const policy::CpuSet& cpus = container.facts.cpus;
  return " names ResourceClaims with " + cpus_text(claimed) + " in its environment, and may use " +
         (cpus.empty() ? "any CPU" : cpus_text(cpus)) + ": dra-driver-cpu did not set its cpuset";
}

}  // namespace

std::string sentence(const policy::ledger::Ledger& ledger,
                     const policy::ledger::RefusedClaims& refused) {
  const policy::ledger::PodRecord& pod = *ledger.find(refused.sandbox);
  const ContainerRecord& container = pod.containers.at(refused.container);
  const std::string wrong = wrong_entry(ledger.prepared(), container);
  return container_of_pod(pod, container.facts) + (wrong.empty() ? not_applied(container) : wrong);
}

}  // namespace ka::messages
