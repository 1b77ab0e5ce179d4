// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/quota_keeper.hpp"

#include <utility>

#include "affinity/host/cfs_quota.hpp"
#include "affinity/host/cgroup_names.hpp"
#include "base/newline.hpp"

namespace ka::helper {

using base::ErrorCode;
using base::Result;

namespace {

/// Who was killed between the two writes of host::write_cpu_max() left the quota as systemd has it.
bool is_half_given(const std::string& cgroup, const std::string& now, const std::string& theirs) {
  return now != theirs && host::is_unit_name(cgroup) && host::is_rounded_quota(now, theirs);
}

}  // namespace

QuotaKeeper::QuotaKeeper(CgroupTree& tree, RecordFile<QuotaRecords> file, const log::Log& log)
    : tree_(tree), file_(std::move(file)), log_(log) {}

/// What was held is held on, until something else is wanted.
void QuotaKeeper::adopt() {
  auto records = file_.load();
  if (!records) {
    damage_ = file_.path().string() + ", of CFS quotas: " + records.error().message +
              "; nothing is written: remove it and restart the helper";
    log_.error("cannot read which CFS quotas an earlier helper removed; none is removed",
               {{"file", file_.path().string()}, {"reason", records.error().message}});
    return;
  }
  records_ = *std::move(records);
  for (const auto& [cgroup, theirs] : records_.quotas) wanted_.insert(cgroup);
}

void QuotaKeeper::keep(std::set<std::string> cgroups) {
  wanted_ = std::move(cgroups);
  check();
}

void QuotaKeeper::check() {
  problems_.clear();
  problem_.clear();
  if (!damage_.empty() || !holds()) return;
  if (const auto opened = tree_.open(); !opened) {
    problem_ = opened.error().message;
    return;
  }
  std::erase_if(records_.quotas, [this](const auto& entry) {
    return !wanted_.contains(entry.first) && give_back(entry.first, entry.second);
  });
  for (const std::string& cgroup : wanted_) {
    const auto done = lift(cgroup);
    if (!done && !is_gone(done)) problems_[cgroup] = cgroup + ": " + done.error().message;
  }
  save();
}

/// True: nothing of ours is there any more. A quota that others have written since stays.
bool QuotaKeeper::give_back(const std::string& cgroup, const std::string& theirs) {
  const auto now = tree_.read(cgroup, host::kCpuMaxFile);
  if (!now) return is_gone(now);
  if (host::is_cpu_quota(*now) && !is_half_given(cgroup, base::without_newline(*now), theirs)) {
    return true;
  }
  const auto done = tree_.write_quota(cgroup, theirs);
  return done || is_gone(done);
}

/// What others want is on disk before it is taken away. A cgroup without the cpu controller has no
/// quota.
Result<void> QuotaKeeper::lift(const std::string& cgroup) {
  const auto now = tree_.read(cgroup, host::kCpuMaxFile);
  if (!now) return unexpected(now.error());
  if (!host::is_cpu_quota(*now)) return {};
  remember(cgroup, base::without_newline(*now));
  if (!save()) return base::fail(ErrorCode::kTransient, "it cannot be recorded");
  auto done = tree_.write_quota(cgroup, std::string(host::kNoCpuMax));
  if (!done) return done;
  const auto again = tree_.read(cgroup, host::kCpuMaxFile);
  if (!again || !host::is_cpu_quota(*again)) return {};
  return base::fail(ErrorCode::kTransient, "it has a CFS quota again");
}

void QuotaKeeper::remember(const std::string& cgroup, const std::string& now) {
  const auto [known, is_first] = records_.quotas.try_emplace(cgroup, now);
  if (!is_first && !is_half_given(cgroup, now, known->second)) known->second = now;
}

std::string QuotaKeeper::problem_of(const std::string& cgroup) const {
  const auto found = problems_.find(cgroup);
  return found == problems_.end() ? std::string() : found->second;
}

bool QuotaKeeper::save() {
  const auto saved = file_.save(records_);
  if (saved) return true;
  log_.warning("cannot record CFS quotas",
               {{"file", file_.path().string()}, {"reason", saved.error().message}});
  return false;
}

}  // namespace ka::helper
