// SPDX-License-Identifier: Apache-2.0
// Where CPUs become isolated, or are so no more, the kernel gives all of its threads in the root
// cgroup all other CPUs, whatever masks they had (update_tasks_cpumask() in
// kernel/cgroup/cpuset.c): kswapd of a NUMA node, threads of interrupts. This gives them back.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "affinity/helper/host_masks.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::helper {

class KernelMaskGuard {
 public:
  using Saved = std::map<std::string, policy::CpuSet>;  ///< by name of the thread

  /// `threads` and `saved`, a part of the records, must outlive it. `save` writes these to disk.
  KernelMaskGuard(const HostMasks& threads, Saved& saved, std::function<bool()> save)
      : threads_(threads), saved_(saved), save_(std::move(save)) {}

  /// Before CPUs change. An error, which is always kTransient: the masks cannot be read.
  base::Result<void> remember();
  /// The same of the threads that restore() has seen, which costs less.
  base::Result<void> remember_known();
  /// Has what is remembered on disk. False: it is in memory only.
  bool record();
  /// After they have. What the kernel refuses, or does in part (the thread had CPUs that are
  /// isolated now), is tried again with the next call. `has_partitions`: there are partitions
  /// whose end will need what this reads, for remember_known().
  void restore(bool has_partitions);

 private:
  base::Result<void> add(const base::Result<std::vector<HostMask>>& masks);
  Saved give_back();

  const HostMasks& threads_;
  Saved& saved_;
  std::function<bool()> save_;
  std::vector<HostMask> known_;  ///< as restore() left them
  bool is_due_ = false;
  bool is_recorded_ = false;
};

}  // namespace ka::helper
