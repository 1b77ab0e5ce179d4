// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/host_masks.hpp"

#include <algorithm>

namespace ka::policy::plan {
namespace {

/// What is neither ours nor as it was before has been written by others since.
CpuSet written_by_others(const CpuSet& now, const std::optional<HostRecord>& record) {
  if (!record) return now;
  const bool is_ours = std::ranges::find(record->ours, now) != record->ours.end();
  return is_ours ? record->theirs : now;
}

}  // namespace

HostMaskPlan plan_host_mask(const CpuSet& now, const std::optional<HostRecord>& record,
                            const CpuSet& quiet, const CpuSet& instead) {
  HostMaskPlan plan{written_by_others(now, record), {}};
  plan.wanted = plan.theirs - quiet;
  if (!plan.wanted.empty() || plan.theirs.empty()) return plan;
  plan.is_stuck = instead.empty();
  plan.wanted = plan.is_stuck ? plan.theirs : instead;
  return plan;
}

}  // namespace ka::policy::plan
