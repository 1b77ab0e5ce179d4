// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/class_keeper.hpp"

#include <algorithm>
#include <utility>

#include "affinity/host/io_weight.hpp"

namespace ka::line {
namespace {

using base::ErrorCode;
using base::Result;
using policy::ThreadKey;

/// There is no weight, as opposed to one that cannot be read.
bool has_none(const base::Error& error) {
  return is_gone(error) || error.code == ErrorCode::kUnavailable;
}

Result<void> kept(int value) {
  return base::fail(ErrorCode::kTransient, "the kernel kept " + std::to_string(value));
}

Result<void> check(const Result<int>& now, int wanted) {
  if (!now) return unexpected(now.error());
  return *now == wanted ? Result<void>() : kept(*now);
}

}  // namespace

// --- observe

void ClassKeeper::observe(host::AffinityCalls& calls, base::ThreadStats& stats,
                          const std::vector<policy::ThreadFacts>& threads,
                          const std::string& cgroup, bool is_requested) {
  cgroup_ = cgroup;
  view_ = {};
  vcpus_.clear();
  for (const policy::ThreadFacts& thread : threads) {
    if (thread.role == policy::Role::kVcpu) vcpus_.push_back({thread.key, thread.vcpu_index});
  }
  std::erase_if(nices_, [&threads](const auto& entry) {
    return std::ranges::find(threads, entry.first, &policy::ThreadFacts::key) == threads.end();
  });
  if (!is_requested && nices_.empty() && !weight_ && !io_max_.holds()) return;
  read_nices(calls, stats);
  read_weight();
  io_max_.observe(cgroup_);
}

void ClassKeeper::read_nices(host::AffinityCalls& calls, base::ThreadStats& stats) {
  for (const Vcpu& vcpu : vcpus_) {
    const auto nice = read_nice(vcpu.key, calls, stats);
    if (is_gone(nice)) continue;
    NiceView view{.key = vcpu.key,
                  .vcpu = vcpu.index,
                  .wanted = {},
                  .actual = {},
                  .problem = {},
                  .unread = {}};
    if (nice) view.actual = *nice;
    if (!nice) view.unread = nice.error().message;
    view_.nice.push_back(std::move(view));
  }
}

void ClassKeeper::read_weight() {
  if (cgroup_.empty()) return;
  const auto weight = host::read_io_weight(cgroup_);
  if (weight) view_.io_weight.actual = *weight;
  const bool is_unread = !weight && !has_none(weight.error());
  view_.io_weight.unread = is_unread ? weight.error().message : "";
}

void ClassKeeper::set_plan(policy::plan::ClassPlan plan) {
  view_.requests = std::move(plan.requests);
  view_.rdt.clear();
  for (NiceView& view : view_.nice) {
    const auto wanted = plan.nice.find(view.vcpu);
    view.wanted = wanted == plan.nice.end() ? std::nullopt : std::optional(wanted->second);
  }
  for (const Vcpu& vcpu : vcpus_) {
    const auto rdt = plan.rdt.find(vcpu.index);
    if (rdt != plan.rdt.end()) view_.rdt.push_back({vcpu.key, vcpu.index, rdt->second});
  }
  view_.io_weight.wanted = plan.io_weight;
  view_.io_max = io_max_.set_plan(plan.io_max, attempts_);
  evaluate();
}

/// What is known to stand in the way.
void ClassKeeper::evaluate() {
  for (NiceView& view : view_.nice) {
    view.problem = view.wanted ? attempts_.refusal_of(view.name()) : "";
    if (view.wanted && !view.unread.empty()) view.problem = "it cannot be read";
  }
  IoWeightView& weight = view_.io_weight;
  weight.problem = weight.wanted ? attempts_.refusal_of(weight.name()) : "";
  if (weight.wanted && !weight.unread.empty()) weight.problem = "it cannot be read";
  if (weight.wanted && cgroup_.empty()) weight.problem = "the sandbox has no cgroup of its own";
}

// --- apply

/// What cannot be read is not written to: what it was could not be given back.
bool ClassKeeper::prepare() {
  bool is_new = io_max_.prepare(view_.io_max, attempts_);
  for (const NiceView& view : view_.nice) {
    if (!view.drifted() || !view.actual || is_refused(view.name())) continue;
    const state::SavedNice fresh{view.key, *view.actual, {}};
    HeldNice& held = nices_.try_emplace(view.key, HeldNice{fresh, {}}).first->second;
    is_new |= held.saved.ours.insert(*view.wanted).second;
  }
  const IoWeightView& weight = view_.io_weight;
  if (!weight.drifted() || cgroup_.empty() || !weight.unread.empty()) return is_new;
  if (is_refused(weight.name())) return is_new;
  if (weight_ && weight_->saved.directory != cgroup_) return is_new;  // given back first
  if (!weight_) {
    const int theirs = weight.actual.value_or(host::kDefaultIoWeight);
    weight_ = HeldWeight{{cgroup_, theirs, {}}, {}};
  }
  return weight_->saved.ours.insert(*weight.wanted).second || is_new;
}

ClassWrites ClassKeeper::place(const ClassWriters& writers, Time now, bool is_recorded) {
  ClassWrites writes;
  attempts_.begin(now, is_recorded);
  for (NiceView& view : view_.nice) {
    if (view.wanted) place_nice(writers, view, writes);
  }
  std::erase_if(nices_, [&](const auto& entry) {
    const auto view = std::ranges::find(view_.nice, entry.first, &NiceView::key);
    const bool is_wanted = view != view_.nice.end() && view->wanted;
    return !is_wanted && give_back(writers, entry.second, writes);
  });
  place_weight(writers, writes);
  io_max_.place(writers.cgroups, view_.io_max, attempts_, writes);
  attempts_.end(now);
  return writes;
}

void ClassKeeper::place_nice(const ClassWriters& writers, NiceView& view, ClassWrites& writes) {
  if (!view.unread.empty()) return attempts_.put_off();
  const auto held = nices_.find(view.key);
  if (!view.drifted() || held == nices_.end()) return;
  if (!attempts_.may_write(view.name(), held->second.written == view.wanted, view.problem)) return;
  auto done = write(writers, {view.key, *view.wanted}, *view.actual, writes);
  if (done) {
    held->second.written = view.wanted;
    const auto now = writers.calls.nice(view.key.tid);
    if (now) view.actual = *now;
    done = check(now, *view.wanted);
  }
  if (!done) return attempts_.fail(view.name(), view.problem, done.error(), writes);
  ++writes.done;
  view.problem.clear();
}

Result<void> ClassKeeper::write(const ClassWriters& writers, const NiceWrite& write, int before,
                                ClassWrites& writes) {
  NiceResult result = write_nice(write, before, writers.calls, writers.stats);
  if (result.reverted) writes.reverted.push_back(write.key.tid);
  if (result.unsettled) writes.unsettled.push_back(write);
  return std::move(result.done);
}

void ClassKeeper::place_weight(const ClassWriters& writers, ClassWrites& writes) {
  IoWeightView& view = view_.io_weight;
  const bool is_elsewhere = weight_ && weight_->saved.directory != cgroup_;
  if (weight_ && (!view.wanted || is_elsewhere)) {
    if (give_back(writers, *weight_, writes)) weight_.reset();
    if (view.wanted) attempts_.put_off();
    return;
  }
  if (!weight_ || !view.drifted() || !view.unread.empty()) return;
  if (!attempts_.may_write(view.name(), weight_->written == view.wanted, view.problem)) return;
  auto done = writers.cgroups.write_io_weight(cgroup_, *view.wanted);
  if (done) {
    weight_->written = view.wanted;
    read_weight();
    done = check(view.actual ? Result<int>(*view.actual)
                             : base::fail(ErrorCode::kTransient, "it cannot be read"),
                 *view.wanted);
  }
  if (!done) return attempts_.fail(view.name(), view.problem, done.error(), writes);
  ++writes.done;
  view.problem.clear();
}

// --- give back

ClassWrites ClassKeeper::give_back(const ClassWriters& writers) {
  ClassWrites writes;
  attempts_.begin();
  std::erase_if(nices_,
                [&](const auto& entry) { return give_back(writers, entry.second, writes); });
  if (weight_ && give_back(writers, *weight_, writes)) weight_.reset();
  io_max_.give_back(writers.cgroups, attempts_, writes);
  attempts_.retry_refused();
  return writes;
}

/// True: nothing of ours is there any more.
bool ClassKeeper::give_back(const ClassWriters& writers, const HeldNice& held,
                            ClassWrites& writes) {
  const auto& [key, theirs, ours] = held.saved;
  const auto now = read_nice(key, writers.calls, writers.stats);
  if (!now && !is_gone(now)) {
    attempts_.put_off();
    return false;
  }
  if (!now || *now == theirs || !ours.contains(*now)) return true;
  const bool is_over = attempts_.is_done(
      write(writers, {key, theirs}, *now, writes),
      "nice " + std::to_string(theirs) + " of thread " + std::to_string(key.tid), writes);
  const auto view = std::ranges::find(view_.nice, key, &NiceView::key);
  if (is_over && view != view_.nice.end()) view->actual = theirs;
  return is_over;
}

bool ClassKeeper::give_back(const ClassWriters& writers, const HeldWeight& held,
                            ClassWrites& writes) {
  const auto& [directory, theirs, ours] = held.saved;
  const auto now = host::read_io_weight(directory);
  if (!now && !has_none(now.error())) {
    attempts_.put_off();
    return false;
  }
  if (!now || *now == theirs || !ours.contains(*now)) return true;
  const bool is_over = attempts_.is_done(writers.cgroups.write_io_weight(directory, theirs),
                                         "block I/O weight " + std::to_string(theirs), writes);
  if (is_over && directory == cgroup_) read_weight();
  return is_over;
}

// --- drift

void ClassKeeper::remember() {
  left_.clear();
  for (const NiceView& view : view_.nice) {
    if (view.actual && nices_.contains(view.key)) left_[view.key] = *view.actual;
  }
  left_weight_ = weight_ ? view_.io_weight.actual : std::nullopt;
  io_max_.remember();
}

bool ClassKeeper::is_unchanged(host::AffinityCalls& calls, Time now) const {
  if (attempts_.is_due(now)) return false;
  return count_changed(calls) == 0;
}

int ClassKeeper::count_changed(host::AffinityCalls& calls) const {
  const auto is_changed = [&calls](const auto& entry) {
    const auto now = calls.nice(entry.first.tid);
    return now && *now != entry.second;
  };
  const auto changed =
      static_cast<int>(std::ranges::count_if(left_, is_changed)) + io_max_.count_changed();
  if (!left_weight_) return changed;
  const auto weight = host::read_io_weight(cgroup_);
  return changed + (weight && *weight != *left_weight_ ? 1 : 0);
}

// --- the state file

state::SavedClasses ClassKeeper::saved() const {
  state::SavedClasses saved;
  for (const auto& [key, held] : nices_) saved.nices.push_back(held.saved);
  if (weight_) saved.io_weight = weight_->saved;
  saved.io_max = io_max_.saved();
  return saved;
}

void ClassKeeper::restore(const state::SavedClasses& saved) {
  for (const state::SavedNice& nice : saved.nices) nices_[nice.key] = {nice, {}};
  if (saved.io_weight) weight_ = HeldWeight{*saved.io_weight, {}};
  io_max_.restore(saved.io_max);
}

}  // namespace ka::line
