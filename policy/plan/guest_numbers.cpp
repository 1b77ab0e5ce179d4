#include "policy/plan/guest_numbers.hpp"

#include <algorithm>

namespace ka::policy {
namespace {

/// What was there at boot is numbered in its order, by every kernel.
bool are_those_of_boot(const std::vector<VcpuFacts>& vcpus, const BootFacts& boot) {
  const auto count = static_cast<int>(vcpus.size());
  if (!boot.plugs_none && boot.cold_vcpus != count) return false;
  return std::ranges::all_of(vcpus, [count](const VcpuFacts& vcpu) { return vcpu.index < count; });
}

}  // namespace

std::optional<std::vector<GuestCpu>> guest_cpus_without_agent(const std::vector<VcpuFacts>& vcpus,
                                                              const BootFacts& boot) {
  if (vcpus.empty() || (!boot.numbers_at_boot && !are_those_of_boot(vcpus, boot))) {
    return std::nullopt;
  }
  std::vector<GuestCpu> cpus;
  for (const VcpuFacts& vcpu : vcpus) {
    if (!vcpu.apic_id) return std::nullopt;
    cpus.push_back({.number = vcpu.index,
                    .hardware_id = static_cast<std::uint64_t>(*vcpu.apic_id),
                    .socket = vcpu.socket,
                    .core = vcpu.core,
                    .thread = vcpu.thread,
                    .node = vcpu.numa,
                    .online = true});
  }
  std::ranges::sort(cpus, {}, &GuestCpu::number);
  return cpus;
}

}  // namespace ka::policy
