// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/assignments.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::ledger {

bool Assignments::replace(const ResourcesSeen& seen) {
  if (seen_ == seen) return false;
  if (seen_.allocatable != seen.allocatable) ++pool_version_;
  seen_ = seen;
  update_rest();
  return true;
}

bool Assignments::forget(std::string_view pod) {
  const auto is_of = [&](const Assignment& one) { return one.pod == pod; };
  if (std::erase_if(seen_.assignments, is_of) == 0) return false;
  update_rest();
  return true;
}

std::set<std::string> Assignments::pods() const {
  std::set<std::string> names;
  for (const Assignment& one : seen_.assignments) names.insert(one.pod);
  return names;
}

std::span<const Assignment> Assignments::of(std::string_view pod) const {
  const auto project = [](const Assignment& one) { return std::string_view(one.pod); };
  return std::ranges::equal_range(seen_.assignments, pod, {}, project);
}

const Assignment* Assignments::find(std::string_view pod, std::string_view container) const {
  const auto list = of(pod);
  const auto found = std::ranges::find(list, container, &Assignment::container);
  return found == list.end() ? nullptr : &*found;
}

CpuSet Assignments::cpus_of(std::string_view pod) const {
  CpuSet cpus;
  for (const Assignment& one : of(pod)) cpus |= one.cpus;
  return cpus;
}

void Assignments::update_rest() {
  CpuSet rest = seen_.allocatable;
  for (const Assignment& one : seen_.assignments) rest -= one.cpus;
  if (std::exchange(rest_, rest) != rest) ++pool_version_;
}

}  // namespace ka::policy::ledger
