// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/domains.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ka::policy::plan {
namespace {

/// N of "iothreadN" (src/conf/domain_conf.c).
std::optional<int> iothread_number(std::string_view id) {
  constexpr std::string_view kPrefix = "iothread";
  if (!id.starts_with(kPrefix)) return std::nullopt;
  id.remove_prefix(kPrefix.size());
  int number = 0;
  const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc{} || stop != id.data() + id.size()) return std::nullopt;
  return number;
}

/// A hundredth of what may be moved may be elsewhere; nothing of what may not.
bool has_arrived(const MemoryPlace& place, const NodeSet& nodes) {
  return !place.moving && place.plan.wanted == nodes &&
         place.plan.verdict == MemoryVerdict::kInPlace &&
         std::ranges::all_of(place.facts.bound, [&](const auto& entry) {
           return entry.second == 0 || nodes.contains(entry.first);
         });
}

}  // namespace

DomainOwners find_domain_owners(const std::vector<DomainPod>& pods, const DomainRules& rules) {
  DomainOwners owners;
  for (const DomainPod& pod : pods) {
    if (!pod.domain.empty() && pod.has_vm) owners.emplace(pod.domain, pod.id);
  }
  for (const std::string& domain : rules.configured) owners.emplace(domain, domain);
  for (const DomainPod& pod : pods) {
    if (!pod.domain.empty()) owners.emplace(pod.domain, pod.id);
  }
  if (!rules.by_annotation) return owners;
  for (const DomainPod& pod : pods) {
    if (!pod.requested.empty() && pod.domain.empty() && !pod.has_vm)
      owners.emplace(pod.requested, pod.id);
  }
  return owners;
}

std::optional<DomainRefusal> domain_refusal(const DomainPod& pod, const DomainRules& rules,
                                            const DomainOwners& owners) {
  const bool is_known = !pod.domain.empty();
  const std::string& domain = is_known ? pod.domain : pod.requested;
  if (domain.empty()) return std::nullopt;
  if (!is_known && !rules.by_annotation) return DomainRefusal::kNotAllowed;
  if (!is_known && pod.has_vm) return DomainRefusal::kOwnVm;
  const auto owner = owners.find(domain);
  if (owner == owners.end() || owner->second == pod.id) return std::nullopt;
  return DomainRefusal::kTaken;
}

DomainPins domain_pins(const SandboxPlan& plan) {
  DomainPins pins{.vcpus = {}, .emulator = plan.roles[Role::kEmulator], .iothreads = {}};
  for (const VcpuPlan& vcpu : plan.vcpus) {
    if (vcpu.placed) pins.vcpus[vcpu.index] = vcpu.cpus;
  }
  for (const auto& [id, cpus] : plan.iothreads) {
    if (const auto number = iothread_number(id)) pins.iothreads[*number] = cpus;
  }
  return pins;
}

std::optional<DomainMemory> domain_memory(const NodeSet& mems,
                                          const std::optional<MemoryPlace>& place) {
  if (mems.empty()) return std::nullopt;
  if (!place) return DomainMemory{mems, false};
  if (place->plan.verdict == MemoryVerdict::kDevice) return std::nullopt;
  return DomainMemory{mems, has_arrived(*place, mems)};
}

}  // namespace ka::policy::plan
