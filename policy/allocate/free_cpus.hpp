// SPDX-License-Identifier: Apache-2.0
// The CPUs that a request may still take, how many of them each group has, and the orders in which
// kubelet's static policy visits groups (cpu_assignment.go, sortAvailable*).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "policy/allocate/machine.hpp"

namespace ka::policy::allocate {

class FreeCpus {
 public:
  /// No CPU is free, and nothing is counted. `machine` must outlive this.
  explicit FreeCpus(const Machine& machine) : machine_(&machine) {}
  /// CPUs that the machine does not know are left out.
  FreeCpus(const Machine& machine, const CpuSet& cpus);

  const CpuSet& cpus() const { return cpus_; }
  int count(CpuLevel level, int group) const {
    return counts_[starts_[static_cast<std::size_t>(level)] + static_cast<std::size_t>(group)];
  }
  /// All CPUs of the group are free.
  bool whole(CpuLevel level, int group) const {
    return count(level, group) == machine_->group(level, group).size;
  }
  /// Those of a group's CPUs that are free.
  CpuSet in(CpuLevel level, int group) const { return machine_->group(level, group).cpus & cpus_; }

  /// Takes free CPUs away; others are ignored.
  void take(const CpuSet& cpus);

  /// The groups with a free CPU: parents in their own order, within a parent those with the fewest
  /// free CPUs first, then by id. A group that lies in two parents comes once, where it is first
  /// met: kubelet lists it twice there, and then counts its CPUs twice.
  std::vector<int> order(CpuLevel level) const;
  /// As order(kCpu), but within a socket CPUs come by number (distribute-cpus-across-cores).
  std::vector<int> cpus_by_number() const;
  /// The groups wholly free, in order().
  std::vector<int> whole_groups(CpuLevel level) const;

 private:
  void add(int cpu);
  std::span<const std::uint16_t> groups(CpuLevel level) const;
  bool any_whole(CpuLevel level) const;
  std::vector<int> nested(CpuLevel outer, CpuLevel inner) const;
  template <typename Place>
  std::vector<int> sorted(CpuLevel level, const Place& place_of) const;

  const Machine* machine_;
  CpuSet cpus_;
  std::array<std::size_t, kCpuLevels> starts_{};
  std::array<std::size_t, kCpuLevels> used_{};  ///< how many of groups_ each level has
  // Groups and counts are below kMaxIds; with half an int each, both stay in malloc's fast path.
  std::vector<std::uint16_t> counts_;  ///< of all levels, one behind the other
  /// The groups that a CPU was free in at first, of all levels, one behind the other: on a full
  /// machine these are far fewer than all.
  std::vector<std::uint16_t> groups_;
};

}  // namespace ka::policy::allocate
