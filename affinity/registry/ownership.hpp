// SPDX-License-Identifier: Apache-2.0
// Since when a CPU has had an owner.
#pragma once

#include <chrono>
#include <map>

#include "policy/facts/id_set.hpp"

namespace ka::registry {

class Ownership {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Ownership(Time start) : start_(start) {}

  /// These CPUs were given away now.
  void record(const policy::CpuSet& cpus, Time now);
  /// Those of `cpus` that have been owned for longer than `age`. A CPU that was never recorded was
  /// owned before the start.
  policy::CpuSet older_than(const policy::CpuSet& cpus, std::chrono::seconds age, Time now) const;

 private:
  Time start_;
  std::map<int, Time> since_;
};

}  // namespace ka::registry
