// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/guest_numbers.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "policy/facts/consume_number.hpp"

namespace ka::policy::plan {
namespace {

/// What was there at boot is numbered in its order, by every kernel.
bool are_those_of_boot(const std::vector<VcpuFacts>& vcpus, const BootFacts& boot) {
  const auto count = static_cast<int>(vcpus.size());
  if (!boot.plugs_none && boot.cold_vcpus != count) return false;
  return std::ranges::all_of(vcpus, [count](const VcpuFacts& vcpu) { return vcpu.index < count; });
}

VcpuSet indices_of(const std::vector<VcpuFacts>& vcpus) {
  VcpuSet indices;
  for (const VcpuFacts& vcpu : vcpus) indices.add(vcpu.index);
  return indices;
}

using Numbers = std::map<int, int>;  ///< guest's numbers by index

std::optional<Numbers> numbers_by_index(const std::vector<VcpuFacts>& vcpus,
                                        const BootFacts& boot) {
  const bool is_by_index = boot.plugs_in_order || boot.numbering == Numbering::kByApicId;
  if (!is_by_index && !are_those_of_boot(vcpus, boot)) return {};
  Numbers numbers;
  for (const VcpuFacts& vcpu : vcpus) numbers[vcpu.index] = vcpu.index;
  return numbers;
}

std::optional<Numbers> numbers_by_plugging(const BootFacts& boot, const PlugHistory& history) {
  if (boot.numbering != Numbering::kByPlugging || !history.from_boot || !history.complete)
    return {};
  Numbers numbers;
  for (int index = 0; index < *boot.cold_vcpus; ++index) numbers[index] = index;
  for (const VcpuSet& group : history.groups) {
    for (const int index : group) numbers.emplace(index, static_cast<int>(numbers.size()));
  }
  return numbers;
}

/// By counting, by index, and what was ever counted.
GuestCpuSet conceivable(const std::vector<VcpuFacts>& vcpus, const BootFacts& boot,
                        const PlugHistory& history) {
  const int counted = std::max(history.size(boot), static_cast<int>(vcpus.size()));
  GuestCpuSet numbers = GuestCpuSet::range(0, counted - 1);
  if (boot.numbering == Numbering::kByPlugging) return numbers;
  for (const VcpuFacts& vcpu : vcpus) numbers.add(vcpu.index);
  return numbers;
}

GuestCpu to_cpu(const VcpuFacts& vcpu, int number) {
  return {.number = number,
          .hardware_id = static_cast<std::uint64_t>(*vcpu.apic_id),
          .socket = vcpu.socket,
          .core = vcpu.core,
          .thread = vcpu.thread,
          .node = vcpu.numa,
          .online = true};
}

std::vector<std::vector<std::uint64_t>> unordered_groups(const std::vector<VcpuFacts>& vcpus,
                                                         const PlugHistory& history) {
  std::vector<std::vector<std::uint64_t>> unordered;
  for (const VcpuSet& group : history.groups) {
    if (group.size() < 2) continue;
    auto& ids = unordered.emplace_back();
    for (const VcpuFacts& vcpu : vcpus) {
      if (group.contains(vcpu.index)) ids.push_back(static_cast<std::uint64_t>(*vcpu.apic_id));
    }
  }
  return unordered;
}

/// If a group of unknown order lost a vCPU, the number that it had is unknown.
bool are_groups_whole(const VcpuSet& present, const PlugHistory& history) {
  return std::ranges::all_of(history.groups, [&present](const VcpuSet& group) {
    return group.size() < 2 || group.subset_of(present) || !group.intersects(present);
  });
}

}  // namespace

Numbering numbering_of(std::string_view release) {
  std::string_view rest = release;
  const auto major = consume_number(rest);
  if (!major || !rest.starts_with('.')) return Numbering::kUnknown;
  rest.remove_prefix(1);
  const auto minor = consume_number(rest);
  if (!minor) return Numbering::kUnknown;
  if (*major > 6 || (*major == 6 && *minor >= 10)) return Numbering::kByApicId;
  const bool is_backported = *major == 6 && *minor == 9;
  const bool is_old = !is_backported && rest.find(".el") == std::string_view::npos;
  return is_old ? Numbering::kByPlugging : Numbering::kUnknown;
}

int PlugHistory::size(const BootFacts& boot) const {
  int size = boot.cold_vcpus.value_or(0);
  for (const VcpuSet& group : groups) size += group.size();
  return size;
}

void record_vcpus(PlugHistory& history, const std::vector<VcpuFacts>& vcpus,
                  const BootFacts& boot) {
  if (history.is_late || !boot.cold_vcpus) return;
  if (!history.from_boot) {
    history.is_late = indices_of(vcpus).last() >= *boot.cold_vcpus;
    history.from_boot = history.complete = are_those_of_boot(vcpus, boot);
    return;
  }
  VcpuSet fresh = indices_of(vcpus) - VcpuSet::range(0, *boot.cold_vcpus - 1);
  for (const VcpuSet& group : history.groups) fresh -= group;
  if (fresh.empty()) return;
  if (std::exchange(history.complete, false) || history.groups.empty()) {
    history.groups.emplace_back();
  }
  history.groups.back() |= fresh;
}

GuestNumbers guest_numbers(const std::vector<VcpuFacts>& vcpus, const BootFacts& boot,
                           const PlugHistory& history) {
  GuestNumbers result{.widest = conceivable(vcpus, boot, history)};
  const auto has_name = [](const VcpuFacts& vcpu) { return vcpu.apic_id.has_value(); };
  if (vcpus.empty() || !std::ranges::all_of(vcpus, has_name)) return result;
  auto numbers = numbers_by_index(vcpus, boot);
  if (!numbers) {
    numbers = numbers_by_plugging(boot, history);
    if (!numbers || !are_groups_whole(indices_of(vcpus), history)) return result;
    result.unordered = unordered_groups(vcpus, history);
  }
  result.widest = {};
  for (const VcpuFacts& vcpu : vcpus) {
    const auto number = numbers->find(vcpu.index);
    if (number == numbers->end()) return {.widest = conceivable(vcpus, boot, history)};
    result.cpus.push_back(to_cpu(vcpu, number->second));
    result.widest.add(number->second);
  }
  std::ranges::sort(result.cpus, {}, &GuestCpu::number);
  result.certain = true;
  return result;
}

}  // namespace ka::policy::plan
