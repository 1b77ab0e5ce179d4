// SPDX-License-Identifier: Apache-2.0
// Since when a CPU has had an owner.
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "policy/facts/id_set.hpp"

namespace ka::registry {

class OwnershipTimes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit OwnershipTimes(Time start) : start_(start) {}

  /// These CPUs were given away now.
  void record_taken(const policy::CpuSet& cpus, Time now);
  /// These CPUs changed hands now: given away, returned, or claimed by more pods or fewer.
  void record_changed(const policy::CpuSet& cpus, Time now);
  /// Since when a CPU has belonged to whom it belongs; absent: since before the start.
  std::optional<Time> last_change(int cpu) const;
  /// Those of `cpus` that have been owned for longer than `age`. A CPU that was never recorded was
  /// owned before the start.
  policy::CpuSet older_than(const policy::CpuSet& cpus, std::chrono::seconds age, Time now) const;

 private:
  Time start_;
  std::map<int, Time> taken_;
  std::map<int, Time> changed_;
};

}  // namespace ka::registry
