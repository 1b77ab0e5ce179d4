// SPDX-License-Identifier: Apache-2.0
// Which pod owns which CPU exclusively, updated incrementally: an event about one container costs
// nothing that grows with the node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::policy::ledger {

class Owners {
 public:
  /// A change of owners.
  struct Moved {
    bool any = false;
    CpuSet taken;  ///< CPUs that the owner has now and had not before
  };

  /// An owner has exactly these CPUs from now on; none: it owns nothing.
  Moved give(const std::string& owner, const CpuSet& cpus);

  const CpuSet& of(const std::string& owner) const;
  /// Those of all owners but `owner`, and but those that have all of `whole`.
  CpuSet of_others(const std::string& owner, const CpuSet& whole) const;
  /// CPUs that have an owner.
  const CpuSet& all() const { return all_; }
  /// CPUs that more than one owns.
  const CpuSet& contested() const { return contested_; }

 private:
  void count(int cpu, int change);

  std::map<std::string, CpuSet> cpus_;
  std::vector<int> owners_;  ///< by CPU: how many own it
  CpuSet all_;
  CpuSet contested_;
};

}  // namespace ka::policy::ledger
