// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/io_max_keeper.hpp"

#include <algorithm>
#include <utility>

#include "affinity/host/io_weight.hpp"

namespace ka::line {
namespace {

using base::ErrorCode;
using base::Result;

/// One name for all disks: that there is no such file is said once.
constexpr const char* kAllDisks = "block I/O limit of its cgroup";

/// There are no limits, as opposed to those that cannot be read.
bool is_absent(const Result<policy::IoLimits>& limits) {
  return !limits && (is_gone(limits) || limits.error().code == ErrorCode::kUnavailable);
}

std::string limits_of(const policy::IoLimits& limits, const std::string& disk) {
  const auto found = limits.find(disk);
  return found == limits.end() ? std::string(policy::kNoIoLimits) : found->second;
}

}  // namespace

void IoMaxKeeper::observe(const std::string& cgroup) {
  cgroup_ = cgroup;
  actual_ = cgroup.empty() ? policy::IoLimits{} : host::read_io_max(cgroup);
}

IoMaxKeeper::Views IoMaxKeeper::set_plan(const policy::IoLimits& wanted,
                                         const ClassAttempts& attempts) const {
  Views views;
  for (const auto& [disk, limits] : wanted) {
    IoMaxView view{.disk = disk, .wanted = limits, .actual = {}, .problem = {}, .unread = {}};
    if (actual_ && !cgroup_.empty()) view.actual = limits_of(*actual_, disk);
    if (!actual_ && !is_absent(actual_)) view.unread = actual_.error().message;
    view.problem = problem_of(view, attempts);
    views.push_back(std::move(view));
  }
  return views;
}

std::string IoMaxKeeper::problem_of(const IoMaxView& view, const ClassAttempts& attempts) const {
  if (cgroup_.empty()) return "the sandbox has no cgroup of its own";
  if (!view.unread.empty()) return "they cannot be read";
  const std::string of_all = attempts.refusal_of(kAllDisks);
  return of_all.empty() ? attempts.refusal_of(view.name()) : of_all;
}

// --- apply

/// What cannot be read is not written to: what it was could not be given back.
bool IoMaxKeeper::prepare(const Views& views, const ClassAttempts& attempts) {
  bool is_new = false;
  for (const IoMaxView& view : views) {
    if (!view.drifted() || !view.actual || !attempts.refusal_of(view.name()).empty()) continue;
    const state::SavedIoMax fresh{cgroup_, view.disk, *view.actual, {}};
    Held& held = held_.try_emplace(view.disk, Held{fresh, {}}).first->second;
    if (held.saved.directory != cgroup_) continue;  // given back first
    is_new |= held.saved.ours.insert(*view.wanted).second;
  }
  return is_new;
}

void IoMaxKeeper::place(host::CpusetWriter& writer, Views& views, ClassAttempts& attempts,
                        ClassWrites& writes) {
  std::erase_if(held_, [&](const auto& entry) {
    const Held& held = entry.second;
    const bool is_wanted = std::ranges::find(views, entry.first, &IoMaxView::disk) != views.end();
    if (is_wanted && held.saved.directory == cgroup_) return false;
    if (is_wanted) attempts.put_off();
    return give_back(writer, held, attempts, writes);
  });
  if (views.empty() || cgroup_.empty()) return;
  if (is_absent(actual_) && attempts.refusal_of(kAllDisks).empty()) {
    std::string problem;
    attempts.fail(kAllDisks, problem, actual_.error(), writes);
  }
  for (IoMaxView& view : views) place(writer, view, attempts, writes);
}

void IoMaxKeeper::place(host::CpusetWriter& writer, IoMaxView& view, ClassAttempts& attempts,
                        ClassWrites& writes) {
  view.problem = problem_of(view, attempts);
  const auto held = held_.find(view.disk);
  if (!view.drifted() || !view.actual || held == held_.end()) return;
  if (!attempts.may_write(view.name(), held->second.written == view.wanted, view.problem)) return;
  auto done = writer.write_io_max(cgroup_, view.disk, *view.wanted);
  if (done) {
    held->second.written = view.wanted;
    observe(cgroup_);
    view.actual = actual_ ? std::optional(limits_of(*actual_, view.disk)) : std::nullopt;
    if (view.drifted()) {
      done = base::fail(ErrorCode::kTransient,
                        "the kernel kept " + view.actual.value_or("what cannot be read"));
    }
  }
  if (!done) return attempts.fail(view.name(), view.problem, done.error(), writes);
  ++writes.done;
  view.problem.clear();
}

// --- give back

void IoMaxKeeper::give_back(host::CpusetWriter& writer, ClassAttempts& attempts,
                            ClassWrites& writes) {
  std::erase_if(
      held_, [&](const auto& entry) { return give_back(writer, entry.second, attempts, writes); });
}

/// True: nothing of ours is there any more.
bool IoMaxKeeper::give_back(host::CpusetWriter& writer, const Held& held, ClassAttempts& attempts,
                            ClassWrites& writes) {
  const auto& [directory, disk, theirs, ours] = held.saved;
  const auto now = host::read_io_max(directory);
  if (is_absent(now)) return true;
  if (!now) {
    attempts.put_off();
    return false;
  }
  const std::string limits = limits_of(*now, disk);
  if (limits == theirs || !ours.contains(limits)) return true;
  const bool is_over =
      attempts.is_done(writer.write_io_max(directory, disk, theirs),
                       "block I/O limit of disk " + disk + " (" + theirs + ')', writes);
  if (is_over && directory == cgroup_) observe(cgroup_);
  return is_over;
}

// --- drift

void IoMaxKeeper::remember() {
  left_.clear();
  for (const auto& [disk, held] : held_) {
    if (actual_) left_[disk] = limits_of(*actual_, disk);
  }
}

int IoMaxKeeper::count_changed() const {
  if (left_.empty()) return 0;
  const auto now = host::read_io_max(cgroup_);
  if (!now) return 0;
  return static_cast<int>(std::ranges::count_if(
      left_, [&](const auto& entry) { return limits_of(*now, entry.first) != entry.second; }));
}

// --- the state file

std::vector<state::SavedIoMax> IoMaxKeeper::saved() const {
  std::vector<state::SavedIoMax> all;
  for (const auto& [disk, held] : held_) all.push_back(held.saved);
  return all;
}

void IoMaxKeeper::restore(const std::vector<state::SavedIoMax>& saved) {
  for (const state::SavedIoMax& one : saved) held_[one.disk] = {one, {}};
}

}  // namespace ka::line
