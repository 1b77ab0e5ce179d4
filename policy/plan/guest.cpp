// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/guest.hpp"

#include <algorithm>
#include <optional>

namespace ka::policy::plan {
namespace {

const VcpuFacts* find_vcpu(const std::vector<VcpuFacts>& vcpus, int index) {
  const auto found = std::ranges::find(vcpus, index, &VcpuFacts::index);
  return found == vcpus.end() || !found->apic_id ? nullptr : &*found;
}

NodeSet nodes_of(const CpuSet& cpus, const Topology& topology) {
  NodeSet nodes;
  for (const int cpu : cpus) {
    if (const Cpu* found = topology.find(cpu)) nodes.add(found->numa);
  }
  return nodes;
}

/// It owns more CPUs than it has vCPUs.
bool lacks_vcpus(const SandboxPlan& plan, std::string_view container) {
  return std::ranges::any_of(plan.warnings, [container](const Note& note) {
    return note.subject == container &&
           (note.code == Code::kTooFewVcpus || note.code == Code::kVcpuShared);
  });
}

/// A vCPU that serves no exclusive container, or one that is indistinguishable from others, or one
/// that waits for more, or the one that has to carry the rest as well.
bool is_common(const SandboxPlan& plan, const VcpuPlan& vcpu, bool may_grow) {
  if (vcpu.container.empty() || is_mask(vcpu.container)) return true;
  if (may_grow && lacks_vcpus(plan, vcpu.container)) return true;
  return std::ranges::any_of(plan.warnings, [&vcpu](const Note& note) {
    return note.code == Code::kNoFloatingVcpu && note.number == vcpu.index;
  });
}

/// It is an exclusive container: some vCPU serves it alone.
bool owns_vcpus(const SandboxPlan& plan, const ContainerPlan& container) {
  return std::ranges::find(plan.vcpus, container.id, &VcpuPlan::container) != plan.vcpus.end();
}

std::vector<std::uint64_t> hardware_ids(const VcpuSet& indices,
                                        const std::vector<VcpuFacts>& vcpus) {
  std::vector<std::uint64_t> ids;
  for (const int index : indices) {
    const VcpuFacts* facts = find_vcpu(vcpus, index);
    if (facts != nullptr) ids.push_back(static_cast<std::uint64_t>(*facts->apic_id));
  }
  std::ranges::sort(ids);
  return ids;
}

/// Guest CPU numbers that are online, by hardware id.
std::map<std::uint64_t, int> online_numbers(const std::vector<GuestCpu>& cpus) {
  std::map<std::uint64_t, int> numbers;
  for (const GuestCpu& cpu : cpus) {
    if (cpu.online && cpu.hardware_id) numbers.emplace(*cpu.hardware_id, cpu.number);
  }
  return numbers;
}

/// Everything that is online but the vCPUs that are kept for containers; where that is nothing,
/// everything.
GuestCpuSet common_cpus(const GuestSpec& spec, const GuestCpuSet& online,
                        const std::map<std::uint64_t, int>& numbers) {
  GuestCpuSet common = online;
  for (const GuestVcpu& vcpu : spec.vcpus) {
    const auto number = numbers.find(vcpu.hardware_id);
    if (!vcpu.common && number != numbers.end()) common.remove(number->second);
  }
  return common.empty() ? online : common;
}

}  // namespace

GuestSpec guest_spec(const SandboxPlan& plan, const std::vector<VcpuFacts>& vcpus,
                     const Topology& topology, const GuestSettings& settings, bool may_grow) {
  GuestSpec spec;
  spec.move_interrupts = settings.move_interrupts;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    const VcpuFacts* facts = find_vcpu(vcpus, vcpu.index);
    if (facts == nullptr) continue;
    spec.vcpus.push_back({.hardware_id = static_cast<std::uint64_t>(*facts->apic_id),
                          .index = vcpu.index,
                          .cpus = vcpu.cpus,
                          .nodes = nodes_of(vcpu.cpus, topology),
                          .dedicated = vcpu.role == VcpuRole::kDedicated,
                          .common = is_common(plan, vcpu, may_grow)});
  }
  std::ranges::sort(spec.vcpus, {}, &GuestVcpu::hardware_id);
  for (const ContainerPlan& container : plan.containers) {
    if (is_mask(container.id)) continue;
    const bool waits = may_grow && lacks_vcpus(plan, container.id);
    spec.containers.push_back(
        {.id = container.id,
         .name = container.name,
         .hardware_ids = hardware_ids(waits ? VcpuSet() : container.vcpus, vcpus),
         .dedicated = container.dedicated,
         .waiting = waits,
         .lift_quota = settings.lift_quota && owns_vcpus(plan, container)});
  }
  std::ranges::sort(spec.containers, {}, &GuestContainer::id);
  return spec;
}

bool keeps_vcpus_apart(const GuestSpec& spec) {
  return std::ranges::any_of(spec.vcpus, [](const GuestVcpu& vcpu) { return !vcpu.common; }) ||
         std::ranges::any_of(spec.containers, &GuestContainer::waiting);
}

GuestPlacement place_in_guest(const GuestSpec& spec, const std::vector<GuestCpu>& cpus) {
  const auto numbers = online_numbers(cpus);
  GuestPlacement placement;
  for (const GuestCpu& cpu : cpus) {
    if (cpu.online) placement.online.add(cpu.number);
  }
  placement.common = common_cpus(spec, placement.online, numbers);
  for (const GuestContainer& container : spec.containers) {
    GuestCpuSet& own = placement.containers[container.id];
    for (const std::uint64_t id : container.hardware_ids) {
      const auto number = numbers.find(id);
      if (number != numbers.end()) own.add(number->second);
    }
    const bool all = own.size() == static_cast<int>(container.hardware_ids.size());
    if (!all) {
      placement.problems[container.id] =
          own.empty() ? GuestProblem::kNoVcpu : GuestProblem::kVcpuMissing;
    }
    if (own.empty()) own = placement.common;
  }
  return placement;
}

std::vector<GuestBreach> check_guest(const GuestSpec& spec, const GuestReport& report) {
  const GuestPlacement placement = place_in_guest(spec, report.cpus);
  std::vector<GuestBreach> breaches;
  for (const GuestContainer& container : spec.containers) {
    const auto state = std::ranges::find(report.containers, container.id, &GuestContainerState::id);
    if (state == report.containers.end() || state->problem == GuestProblem::kNotFound) continue;
    const GuestCpuSet& wanted = placement.containers.at(container.id);
    const bool elsewhere = state->wanted != wanted || !state->actual.subset_of(wanted);
    if (!elsewhere && state->problem == GuestProblem::kNone && state->outside == 0) continue;
    breaches.push_back({container.id, state->problem, wanted, state->actual});
  }
  return breaches;
}

}  // namespace ka::policy::plan
