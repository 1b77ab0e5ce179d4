// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/allocations.hpp"

#include <algorithm>

#include "affinity/messages/terms.hpp"

namespace ka::managed {

using policy::CpuSet;
using policy::ledger::Claim;
using policy::managed::CpuUse;
using policy::managed::Entry;
using policy::managed::Problem;

policy::ledger::KubeletSeen owners_of(const policy::managed::Books& books) {
  std::vector<Claim> claims;
  for (const auto& [id, entry] : books.entries()) {
    if (entry.use != CpuUse::kExclusive || entry.ended) continue;
    const bool has_uid = !entry.about.pod_uid.empty();
    claims.push_back({entry.about.pod_uid, has_uid ? entry.about.name : id, books.cpus_of(id)});
  }
  std::ranges::sort(claims);
  return {books.shared_pool(), std::move(claims)};
}

std::string sentence(const Problem& problem) {
  using Kind = Problem::Kind;
  const std::string requested = messages::counted(problem.requested, "CPU");
  switch (problem.kind) {
    case Kind::kUnknownClass:
      return "its annotation names no class: none, exclusive, share";
    case Kind::kNotAllowed:
      return "pods may not choose the class of its annotation (allow_classes)";
    case Kind::kNoLimit:
      return "it has no CPU limit";
    case Kind::kNotWhole:
      return "its CPU limit is not a number of whole CPUs";
    case Kind::kNotEnough:
      return requested + " requested, " + std::to_string(problem.available) + " available";
    case Kind::kNotWholeCores:
      return requested + " requested, not a number of whole cores (full-pcpus-only)";
    case Kind::kNotEnoughWholeCores:
      return requested + " requested, " + std::to_string(problem.available) +
             " available on whole cores (full-pcpus-only)";
    case Kind::kNotAligned:
      return requested +
             " requested, not to be had on NUMA nodes with its memory and devices (align)";
    case Kind::kOffline:
      return "CPUs that it owned went offline, and none are available in their place";
    case Kind::kInfra:
      return "its namespace runs on the infra pool";
  }
  return {};
}

std::string remedy(const Problem& problem) {
  using Kind = Problem::Kind;
  switch (problem.kind) {
    case Kind::kUnknownClass:
      return "correct the annotation";
    case Kind::kNotAllowed:
      return "add the class to allow_classes, or use `kata-affinityctl class`";
    case Kind::kNoLimit:
    case Kind::kNotWhole:
      return "give it a limit of whole CPUs";
    case Kind::kNotWholeCores:
      return "give it a limit of whole cores";
    case Kind::kNotEnough:
    case Kind::kNotEnoughWholeCores:
      return "free CPUs with `kata-affinityctl class POD none`, then give it its class again";
    case Kind::kNotAligned:
      return "free CPUs or memory on one node, or set align = \"best-effort\"";
    case Kind::kOffline:
      return "free CPUs with `kata-affinityctl class POD none`: it gets them";
    case Kind::kInfra:
      return "take the namespace out of infra_namespaces";
  }
  return {};
}

std::string sentence(const Entry& entry, const CpuSet& cpus) {
  std::string text = entry.infra                       ? "infra"
                     : entry.use == CpuUse::kNone      ? "shared pool"
                     : entry.use == CpuUse::kExclusive ? "exclusive"
                                                       : "share";
  text += ", " + messages::cpus_text(cpus);
  if (!entry.mems.empty()) text += ", memory on nodes " + policy::format_list(entry.mems);
  if (entry.memory_unbound) text += ", memory on any node: those of its CPUs have no room";
  return entry.problem ? text + ": " + sentence(*entry.problem) : text;
}

std::string title(const Entry& entry) {
  return "container " + entry.about.name + " of " +
         (entry.about.pod_name.empty() ? entry.about.sandbox : entry.about.pod_name);
}

}  // namespace ka::managed
