// SPDX-License-Identifier: Apache-2.0
// grade = "quiet": what becomes of one mask of the host (an interrupt's CPUs, a kernel thread's
// affinity, a slice's cpuset, ...) when some CPUs are to be left alone.
#pragma once

#include <optional>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::policy::plan {

/// What is on record of a mask that we wrote.
struct HostRecord {
  CpuSet theirs;  ///< as others last wrote it
  std::vector<CpuSet>
      ours;  ///< what may be there of ours: also what was begun and perhaps not done

  bool operator==(const HostRecord&) const = default;
};

struct HostMaskPlan {
  CpuSet theirs;          ///< as others last wrote it
  CpuSet wanted;          ///< what it is to be
  bool is_stuck = false;  ///< it stays on CPUs of `quiet`: none would be left

  bool operator==(const HostMaskPlan&) const = default;
};

/// Takes the CPUs of `quiet` out of a mask that reads `now`. Never the last ones: then it gets
/// `instead`, or, where that is empty, stays as others wrote it. Bits are only put back that others
/// had there.
HostMaskPlan plan_host_mask(const CpuSet& now, const std::optional<HostRecord>& record,
                            const CpuSet& quiet, const CpuSet& instead);

}  // namespace ka::policy::plan
