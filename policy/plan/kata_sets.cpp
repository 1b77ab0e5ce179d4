// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/kata_sets.hpp"

#include <algorithm>

#include "policy/plan/guest.hpp"

namespace ka::policy::plan {
namespace {

using Ids = std::vector<std::uint64_t>;

/// Some of `group` are in `ids`, others are not.
bool splits(const Ids& ids, const Ids& group) {
  const auto inside = std::ranges::count_if(
      group, [&ids](std::uint64_t id) { return std::ranges::find(ids, id) != ids.end(); });
  return inside != 0 && inside != static_cast<std::ptrdiff_t>(group.size());
}

/// Those that not every container may use.
Ids kept_ids(const GuestSpec& spec) {
  Ids ids;
  for (const GuestVcpu& vcpu : spec.vcpus) {
    if (!vcpu.common) ids.push_back(vcpu.hardware_id);
  }
  return ids;
}

}  // namespace

bool can_place_by_numbers(const GuestSpec& spec, const GuestNumbers& numbers) {
  if (!numbers.certain) return false;
  const Ids kept = kept_ids(spec);
  return std::ranges::none_of(numbers.unordered, [&](const Ids& group) {
    return splits(kept, group) ||
           std::ranges::any_of(spec.containers, [&group](const GuestContainer& container) {
             return splits(container.hardware_ids, group);
           });
  });
}

GuestSets sets_for_kata(const GuestSpec& spec, const GuestNumbers& numbers,
                        const GuestSets& writes) {
  GuestSets sets;
  for (const auto& [container, before] : writes) sets[container] = numbers.widest;
  if (spec.release || !can_place_by_numbers(spec, numbers)) return sets;
  const GuestPlacement placement = place_in_guest(spec, numbers.cpus);
  for (const auto& [container, cpus] : placement.containers) {
    if (cpus != placement.online || writes.contains(container)) sets[container] = cpus;
  }
  return sets;
}

}  // namespace ka::policy::plan
