// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/partition_keeper.hpp"

#include <algorithm>
#include <utility>

#include "affinity/helper/exclusive_cpus.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::CpuSet;
using policy::Partition;
using policy::ThreadKey;

constexpr int kMostTries = 5;

/// Another try would fail as well.
bool is_final_for_partition(const base::Error& error) {
  return is_gone(error) || error.code == ErrorCode::kConflict ||
         error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kInvalid;
}

/// What is in both: the way from one to the other on which no CPU is taken.
Partition common_part(const Partition& now, const Partition& wanted) {
  Partition common = wanted;
  common.cpus &= now.cpus;
  std::erase_if(common.vcpus,
                [&](const ThreadKey& vcpu) { return std::ranges::count(now.vcpus, vcpu) == 0; });
  return common;
}

}  // namespace

PartitionKeeper::PartitionKeeper(CgroupTree& tree, const Scheduling& scheduling, VmmThreads threads,
                                 const HostMasks& kernel_threads, RecordFile<PartitionRecords> file,
                                 const log::Log& log)
    : tree_(tree),
      file_(std::move(file)),
      log_(log),
      guard_(kernel_threads, records_.kernel_masks, [this] { return save(); }),
      builder_(tree, scheduling, std::move(threads), records_, guard_, [this] { return save(); }) {}

/// What was held is held on, until something else is wanted.
void PartitionKeeper::adopt() {
  auto records = file_.load();
  if (!records) {
    is_damaged_ = true;
    state_.problem = file_.path().string() + ", of partitions: " + records.error().message +
                     "; nothing is written: remove it and restart the helper (what was made lasts "
                     "until the next boot)";
    log_.error("cannot read which partitions an earlier helper made; none is made",
               {{"file", file_.path().string()}, {"reason", records.error().message}});
    return;
  }
  records_ = *std::move(records);
  for (const auto& [vmm, record] : records_.partitions) wanted_.push_back(record.partition);
}

void PartitionKeeper::keep(std::vector<Partition> wanted) {
  wanted_ = std::move(wanted);
  failures_.clear();
  check();
}

void PartitionKeeper::restrict_to(const CpuSet& cpus) {
  std::erase_if(wanted_, [&](const Partition& one) { return !one.cpus.subset_of(cpus); });
  check();
}

void PartitionKeeper::ended(const ThreadKey& vmm) {
  std::erase_if(wanted_, [&](const Partition& one) { return one.vmm == vmm; });
  std::erase_if(state_.partitions, [&](const PartitionState& one) { return one.vmm == vmm; });
  if (is_damaged_ || !records_.partitions.contains(vmm)) return;
  const PartitionRecords before = records_;
  (void)guard_.remember_known();
  undo(vmm);
  withdraw();
  guard_.restore(!records_.partitions.empty());
  save();
  report(before);
}

std::optional<CpuSet> PartitionKeeper::overwritten(const std::string& thread) const {
  const auto found = records_.kernel_masks.find(thread);
  return found == records_.kernel_masks.end() ? std::nullopt : std::optional(found->second);
}

int PartitionKeeper::times_undone(const ThreadKey& vmm) const {
  const auto found = undone_.find(vmm);
  return found == undone_.end() ? 0 : found->second;
}

void PartitionKeeper::check() {
  if (is_damaged_) return;
  is_unfinished_ = false;
  state_ = {};
  if (!holds()) return;
  if (const auto opened = tree_.open(); !opened) {
    state_.problem = opened.error().message;
    return;
  }
  const PartitionRecords before = records_;
  bring();
  report(before);
}

/// CPUs are free before another partition gets them.
void PartitionKeeper::bring() {
  undo_unwanted();
  withdraw();
  for (const Partition& one : wanted_) shrink(one);
  withdraw();
  for (const Partition& one : wanted_) establish(one);
  withdraw();
  guard_.restore(!records_.partitions.empty());
  save();
}

void PartitionKeeper::withdraw() { is_unfinished_ |= !withdraw_unneeded(tree_, records_); }

void PartitionKeeper::report(const PartitionRecords& before) {
  const auto log = [this](const char* text, const PartitionRecord& record) {
    log_.info(text,
              {{"cpus", policy::format_list(record.partition.cpus)}, {"cgroup", record.cgroup}});
  };
  for (const auto& [vmm, record] : before.partitions) {
    if (!records_.partitions.contains(vmm)) log("a partition is gone", record);
  }
  for (const auto& [vmm, record] : records_.partitions) {
    if (!before.partitions.contains(vmm) && has(vmm)) log("a partition is made", record);
  }
  std::map<ThreadKey, std::string> now;
  for (const PartitionState& one : state_.partitions) {
    const std::string& why = one.problem.empty() ? one.not_realtime : one.problem;
    if (why.empty()) continue;
    now[one.vmm] = why;
    const auto known = reported_.find(one.vmm);
    if (known != reported_.end() && known->second == why) continue;
    log_.warning(one.problem.empty() ? "vCPUs are not real-time threads" : "there is no partition",
                 {{"cpus", policy::format_list(one.cpus)}, {"reason", why}});
  }
  reported_ = std::move(now);
}

// --- put back

void PartitionKeeper::undo_unwanted() {
  std::vector<ThreadKey> unwanted;
  for (const auto& [vmm, record] : records_.partitions) {
    const bool is_wanted = std::ranges::count(wanted_, vmm, &Partition::vmm) > 0;
    if (!is_wanted || is_given_up(vmm)) unwanted.push_back(vmm);
  }
  for (const ThreadKey& vmm : unwanted) undo(vmm);
}

/// True: nothing of ours is there any more.
bool PartitionKeeper::undo(const ThreadKey& vmm) {
  const auto record = records_.partitions.find(vmm);
  if (record == records_.partitions.end()) return true;
  made_.erase(vmm);
  undone_.erase(vmm);
  const auto done = builder_.undo(record->second);
  if (done) records_.partitions.erase(record);
  is_unfinished_ |= !done;
  return done.has_value();
}

// --- make

/// It gives up what is not wanted. What that fails for, establish() meets again.
void PartitionKeeper::shrink(const Partition& wanted) {
  const auto record = records_.partitions.find(wanted.vmm);
  if (record == records_.partitions.end()) return;
  const Partition now = record->second.partition;
  if (now.cpus.subset_of(wanted.cpus)) return;
  made_.erase(wanted.vmm);
  const Partition common = common_part(now, wanted);
  if (common.cpus.empty() || common.vcpus.empty()) {
    undo(wanted.vmm);
  } else {
    (void)builder_.make(common, record->second.cgroup);
  }
}

/// What cannot be seen now stays as it is.
void PartitionKeeper::establish(const Partition& wanted) {
  state_.partitions.push_back({wanted.vmm, wanted.cpus, {}, {}});
  PartitionState& state = state_.partitions.back();
  if (is_given_up(wanted.vmm)) {
    state.problem = failures_.at(wanted.vmm).why;
    return;
  }
  const auto cgroup = builder_.find_cgroup(wanted);
  const auto done = cgroup ? make(wanted, *cgroup) : unexpected(cgroup.error());
  if (done) {
    failures_.erase(wanted.vmm);
    const auto realtime = builder_.make_realtime(wanted);
    if (!realtime) state.not_realtime = realtime.error().message;
    return;
  }
  state.problem = done.error().message;
  if (cgroup || is_final_for_partition(done.error())) return fail(wanted, done.error());
  is_unfinished_ = true;
}

/// Where the VMM was moved, the partition moves with it. One that could not be made as a whole, or
/// that an earlier helper may not have lived to make, was undone by nobody.
Result<void> PartitionKeeper::make(const Partition& wanted, const std::string& cgroup) {
  const auto known = records_.partitions.find(wanted.vmm);
  const bool has_moved = known != records_.partitions.end() && known->second.cgroup != cgroup;
  const bool is_as_recorded =
      known != records_.partitions.end() && !has_moved && known->second.partition == wanted;
  if (has_moved && !undo(wanted.vmm)) {
    return base::fail(ErrorCode::kTransient, "it is still in another cgroup");
  }
  if (has_moved) withdraw();
  if (!is_as_recorded) made_.erase(wanted.vmm);
  const bool is_undone = made_.contains(wanted.vmm) && !builder_.is_made(wanted, cgroup);
  auto done = builder_.make(wanted, cgroup);
  if (done) made_.insert(wanted.vmm);
  if (done && is_undone) record_undone(wanted, cgroup);
  return done;
}

void PartitionKeeper::record_undone(const Partition& wanted, const std::string& cgroup) {
  ++undone_[wanted.vmm];
  log_.warning("a partition that another program undid is made again",
               {{"cpus", policy::format_list(wanted.cpus)}, {"cgroup", cgroup}});
}

/// What cannot be made leaves nothing behind, but not at the first failure that may pass.
void PartitionKeeper::fail(const Partition& wanted, const base::Error& error) {
  Failure& failure = failures_[wanted.vmm];
  failure.why = error.message;
  failure.is_final = is_final_for_partition(error) || ++failure.tries >= kMostTries;
  if (failure.is_final) {
    undo(wanted.vmm);
  } else {
    is_unfinished_ = true;
  }
}

bool PartitionKeeper::is_given_up(const ThreadKey& vmm) const {
  const auto failure = failures_.find(vmm);
  return failure != failures_.end() && failure->second.is_final;
}

bool PartitionKeeper::save() {
  const auto saved = file_.save(records_);
  if (saved) return true;
  is_unfinished_ = true;
  log_.warning("cannot record partitions",
               {{"file", file_.path().string()}, {"reason", saved.error().message}});
  return false;
}

}  // namespace ka::helper
