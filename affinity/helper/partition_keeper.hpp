// SPDX-License-Identifier: Apache-2.0
// Keeps the dedicated vCPUs of VMMs in partitions: makes these, as often as others undo them, and
// puts all back in the end.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/helper/cgroup_tree.hpp"
#include "affinity/helper/host_masks.hpp"
#include "affinity/helper/kernel_mask_guard.hpp"
#include "affinity/helper/partition_builder.hpp"
#include "affinity/helper/partition_records.hpp"
#include "affinity/helper/record_file.hpp"
#include "affinity/helper/scheduling.hpp"
#include "affinity/helper/vmm_threads.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/facts/partition.hpp"

namespace ka::helper {

struct PartitionState {
  policy::ThreadKey vmm;
  policy::CpuSet cpus;
  std::string problem;       ///< why there is no such partition; empty: there is
  std::string not_realtime;  ///< why its vCPUs have not the priority; empty: they have
};

struct PartitionStates {
  std::vector<PartitionState> partitions;
  std::string problem;  ///< why there can be none; empty: nothing is in the way
};

class PartitionKeeper {
 public:
  /// `tree`, `scheduling`, `kernel_threads` and `log` must outlive it.
  PartitionKeeper(CgroupTree& tree, const Scheduling& scheduling, VmmThreads threads,
                  const HostMasks& kernel_threads, RecordFile<PartitionRecords> file,
                  const log::Log& log);
  PartitionKeeper(const PartitionKeeper&) = delete;
  PartitionKeeper& operator=(const PartitionKeeper&) = delete;
  ~PartitionKeeper() = default;

  /// Takes over what an earlier helper recorded. Where that cannot be read, nothing is ever
  /// written: state() says why.
  void adopt();
  /// From now on there are these partitions and no others of ours; none: all is put back. VMMs are
  /// unique, and so are CPUs.
  void keep(std::vector<policy::Partition> wanted);
  /// Those that have other CPUs are not wanted any more.
  void restrict_to(const policy::CpuSet& cpus);
  /// The VMM has ended. Its cgroup cannot be removed before the partition in it. Nothing else is
  /// looked at.
  void ended(const policy::ThreadKey& vmm);
  /// Reads all again, and repairs it. What could not be made is not tried again before keep().
  void check();

  const std::vector<policy::Partition>& wanted() const { return wanted_; }
  /// The VMM has a partition, as the last check() found it.
  bool has(const policy::ThreadKey& vmm) const {
    return records_.partitions.contains(vmm) && !failures_.contains(vmm);
  }
  /// How often check() has found the VMM's partition undone by others since it was made, or since
  /// this helper runs.
  int times_undone(const policy::ThreadKey& vmm) const;
  /// What a kernel thread had before partitions, by its name, where it has not got that back yet.
  std::optional<policy::CpuSet> overwritten(const std::string& thread) const;
  /// It has been given another mask since.
  void forget_overwritten(const std::string& thread) { records_.kernel_masks.erase(thread); }
  /// Has what was forgotten on disk.
  void save_overwritten() { (void)save(); }
  /// Something of ours is there, or is to be: check() is needed.
  bool holds() const { return !wanted_.empty() || !records_.empty(); }
  /// Something failed that may succeed soon.
  bool is_unfinished() const { return is_unfinished_; }
  const std::filesystem::path& file() const { return file_.path(); }
  /// As the last check() found it.
  const PartitionStates& state() const { return state_; }

 private:
  struct Failure {
    std::string why;
    int tries = 0;
    bool is_final = false;  ///< it is not tried again before keep()
  };

  void bring();
  void undo_unwanted();
  bool undo(const policy::ThreadKey& vmm);
  void shrink(const policy::Partition& wanted);
  void establish(const policy::Partition& wanted);
  base::Result<void> make(const policy::Partition& wanted, const std::string& cgroup);
  void record_undone(const policy::Partition& wanted, const std::string& cgroup);
  void fail(const policy::Partition& wanted, const base::Error& error);
  bool is_given_up(const policy::ThreadKey& vmm) const;
  void withdraw();
  void report(const PartitionRecords& before);
  bool save();

  CgroupTree& tree_;
  RecordFile<PartitionRecords> file_;
  const log::Log& log_;
  PartitionRecords records_;
  KernelMaskGuard guard_;
  PartitionBuilder builder_;
  std::vector<policy::Partition> wanted_;
  std::map<policy::ThreadKey, Failure> failures_;  ///< by VMM
  std::map<policy::ThreadKey, int> undone_;        ///< times_undone()
  std::set<policy::ThreadKey> made_;  ///< VMMs whose partition, as recorded, was made as a whole
  std::map<policy::ThreadKey, std::string> reported_;  ///< why there is none, as it was logged
  bool is_damaged_ = false;  ///< what an earlier helper wrote is not known
  bool is_unfinished_ = false;
  PartitionStates state_;
};

}  // namespace ka::helper
