// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/interrupt_keeper.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "affinity/host/passed_through.hpp"
#include "policy/plan/diff.hpp"

namespace ka::line {
namespace {

using base::ErrorCode;
using policy::CpuSet;
using policy::InterruptFacts;
using state::SavedInterrupt;

/// EINVAL: the interrupt controller cannot send it elsewhere (irq_do_set_affinity() in
/// kernel/irq/manage.c). ENOSPC and EBUSY pass.
bool is_final_for_interrupt(const base::Error& error) {
  return error.code != ErrorCode::kTransient || error.number == EINVAL;
}

const InterruptFacts* find(const std::vector<InterruptFacts>& interrupts,
                           const SavedInterrupt& record) {
  const auto found = std::ranges::find(interrupts, record.number, &InterruptFacts::number);
  return found == interrupts.end() || found->name != record.name ? nullptr : &*found;
}

SavedInterrupt fresh_record(const InterruptView& view) {
  return {view.facts.number, view.facts.name, view.facts.cpus, {}};
}

const InterruptView* find_number(const std::vector<InterruptView>& views, int number) {
  const auto found = std::ranges::find_if(
      views, [number](const InterruptView& view) { return view.facts.number == number; });
  return found == views.end() ? nullptr : &*found;
}

}  // namespace

base::Result<void> InterruptKeeper::observe(const vmm::Roots& roots, int vmm) {
  base::Trouble trouble;
  auto found = host::find_passed_through(roots.proc, roots.sys, vmm, trouble);
  const policy::PassedThrough before = picture();
  devices_ = std::move(found.devices);
  views_.clear();
  for (InterruptFacts& facts : found.interrupts) {
    views_.push_back({.facts = std::move(facts), .wanted = {}, .problem = {}});
  }
  if (!trouble.none()) keep_unseen(before);
  forget_freed(trouble.none());
  return trouble.none() ? base::Result<void>() : unexpected(*trouble.any());
}

void InterruptKeeper::keep_unseen(const policy::PassedThrough& before) {
  for (const policy::DeviceFacts& device : before.devices) {
    const auto seen = std::ranges::find(devices_, device.id, &policy::DeviceFacts::id);
    if (seen == devices_.end()) {
      devices_.push_back(device);
    } else if (seen->node < 0) {
      seen->node = device.node;
    }
  }
  for (const InterruptFacts& facts : before.interrupts) {
    if (find_number(views_, facts.number) != nullptr) continue;
    views_.push_back({.facts = facts, .wanted = {}, .seen = false, .problem = {}});
  }
  std::ranges::sort(devices_, {}, &policy::DeviceFacts::id);
  std::ranges::sort(views_, {}, [](const InterruptView& view) { return view.facts.number; });
}

policy::PassedThrough InterruptKeeper::picture() const {
  policy::PassedThrough picture{devices_, {}};
  for (const InterruptView& view : views_) picture.interrupts.push_back(view.facts);
  return picture;
}

/// A number that was freed may be another interrupt's by now. One that is not there may only be
/// unseen.
void InterruptKeeper::forget_freed(bool is_all_seen) {
  const auto is_freed = [&](const auto& entry) {
    const InterruptView* view = find_number(views_, entry.first);
    return view == nullptr ? is_all_seen : view->facts.name != entry.second.name;
  };
  std::erase_if(records_, is_freed);
  std::erase_if(refused_, is_freed);
}

void InterruptKeeper::set_plan(const policy::plan::SandboxPlan& plan, const CpuSet& doubted) {
  for (InterruptView& view : views_) {
    const auto wanted = plan.interrupts.find(view.facts.device);
    view.wanted = wanted == plan.interrupts.end()
                      ? CpuSet{}
                      : policy::plan::without_doubted(wanted->second, view.facts.cpus, doubted);
    evaluate(view);
  }
}

/// An interrupt that has another handler beside VFIO's is not the VM's alone. What the kernel
/// refused is tried again when the plan wants something else.
void InterruptKeeper::evaluate(InterruptView& view) const {
  view.managed = !view.wanted.empty() && view.facts.shared_with.empty();
  view.problem.clear();
  if (!view.facts.shared_with.empty()) {
    view.problem = "shared with " + view.facts.shared_with + ", left alone";
  }
  if (!view.seen) view.problem = "unreadable";
  const auto refused = refused_.find(view.facts.number);
  if (refused == refused_.end() || refused->second.wanted != view.wanted) return;
  view.managed = false;
  view.problem = refused->second.why;
}

bool InterruptKeeper::must_leave(const CpuSet& cpus) const {
  return std::ranges::any_of(views_, [&](const InterruptView& view) {
    return view.drifted() && view.facts.cpus.intersects(cpus);
  });
}

/// We sent it where it is to go, and another program sent it away.
bool InterruptKeeper::is_contested(const InterruptView& view) const {
  const auto record = records_.find(view.facts.number);
  return record != records_.end() && record->second.ours == view.wanted && view.drifted();
}

bool InterruptKeeper::prepare() {
  bool is_new = false;
  for (const InterruptView& view : views_) {
    if (!view.drifted()) continue;
    SavedInterrupt& record =
        records_.try_emplace(view.facts.number, fresh_record(view)).first->second;
    if (record.ours == view.wanted || record.next == view.wanted) continue;
    record.next = view.wanted;
    is_new = true;
  }
  return is_new;
}

InterruptWrites InterruptKeeper::place(const vmm::Roots& roots, const CpuSet& foreign, Time now) {
  InterruptWrites writes;
  const bool in_time = answer_limit_.may_answer(now);
  bool answers = false;
  unanswered_ = false;
  for (InterruptView& view : views_) {
    if (view.wanted.empty()) give_back_one(roots, view, foreign, writes);
    if (!view.managed || !view.seen) continue;
    answers |= in_time && is_contested(view);
    if (may_place(view, in_time)) place_one(roots, view, writes);
  }
  if (answers) answer_limit_.answered(now);
  return writes;
}

InterruptWrites InterruptKeeper::leave(const vmm::Roots& roots, const CpuSet& foreign, Time now) {
  InterruptWrites writes;
  const bool in_time = answer_limit_.may_answer(now);
  for (InterruptView& view : views_) {
    const bool is_there = view.drifted() && view.facts.cpus.intersects(foreign);
    if (is_there && may_place(view, in_time)) place_one(roots, view, writes);
  }
  return writes;
}

bool InterruptKeeper::may_place(InterruptView& view, bool in_time) {
  if (in_time || !is_contested(view)) return true;
  view.problem = "another program keeps changing its affinity; reverted with back-off";
  unanswered_ = true;
  return false;
}

/// One that is in its place without our doing is to stay there from now on.
void InterruptKeeper::place_one(const vmm::Roots& roots, InterruptView& view,
                                InterruptWrites& writes) {
  const SavedInterrupt fresh = fresh_record(view);
  if (view.drifted() && !send(roots, view, writes)) return;
  SavedInterrupt& record = records_.try_emplace(fresh.number, fresh).first->second;
  record.ours = view.wanted;
  record.next = {};
}

/// False: it is where it was.
bool InterruptKeeper::send(const vmm::Roots& roots, InterruptView& view, InterruptWrites& writes) {
  auto sent = host::send_interrupt(roots.proc, roots.sys, view.facts, view.wanted);
  if (!sent) {
    fail(view, sent.error(), writes);
    return false;
  }
  ++writes.done;
  view.facts.cpus = std::move(*sent);
  view.problem = view.drifted() ? "the kernel kept " + policy::format_list(view.facts.cpus) : "";
  unanswered_ |= view.drifted();
  return true;
}

void InterruptKeeper::fail(InterruptView& view, const base::Error& error, InterruptWrites& writes) {
  view.problem = error.message;
  if (is_gone(error) || !is_final_for_interrupt(error)) {
    unanswered_ = true;
    writes.failed += is_gone(error) ? 0 : 1;
    return;
  }
  view.managed = false;
  view.problem = "cannot be moved: " + error.message;
  refused_[view.facts.number] = {view.facts.name, view.wanted, view.problem};
  writes.refused.push_back(view.name() + " cannot be moved and is left alone: " + error.message);
}

InterruptWrites InterruptKeeper::give_back(const vmm::Roots& roots, const CpuSet& foreign) {
  InterruptWrites writes;
  unanswered_ = false;
  for (InterruptView& view : views_) give_back_one(roots, view, foreign, writes);
  refused_.clear();
  return writes;
}

void InterruptKeeper::give_back_one(const vmm::Roots& roots, InterruptView& view,
                                    const CpuSet& foreign, InterruptWrites& writes) {
  const auto record = records_.find(view.facts.number);
  if (record == records_.end() || !view.seen) return;
  const CpuSet cpus = record->second.theirs - foreign;
  const bool ours =
      view.facts.cpus == record->second.ours || view.facts.cpus == record->second.next;
  if (!ours || cpus.empty() || cpus == view.facts.cpus) {
    records_.erase(record);
    return;
  }
  auto sent = host::send_interrupt(roots.proc, roots.sys, view.facts, cpus);
  ++(sent ? writes.done : writes.failed);
  const bool is_over = sent || is_gone(sent) || is_final_for_interrupt(sent.error());
  unanswered_ |= !is_over;
  if (is_over) records_.erase(record);
  if (sent) view.facts.cpus = std::move(*sent);
}

bool InterruptKeeper::is_unchanged(const vmm::Roots& roots, bool node_has_vfio, int vmm,
                                   Time now) const {
  if (unanswered_ && answer_limit_.may_answer(now)) return false;
  if (!node_has_vfio) return left_ == policy::PassedThrough{};
  base::Trouble trouble;
  return host::find_passed_through(roots.proc, roots.sys, vmm, trouble) == left_ && trouble.none();
}

int InterruptKeeper::count_changed(const vmm::Roots& roots, int vmm) const {
  if (records_.empty()) return 0;
  base::Trouble ignored;
  const auto now = host::find_passed_through(roots.proc, roots.sys, vmm, ignored).interrupts;
  return static_cast<int>(std::ranges::count_if(records_, [&](const auto& entry) {
    const SavedInterrupt& record = entry.second;
    const InterruptFacts* before = find(left_.interrupts, record);
    const InterruptFacts* after = find(now, record);
    if (before == nullptr || after == nullptr) return false;
    return after->cpus != before->cpus && after->cpus != record.ours;
  }));
}

std::vector<SavedInterrupt> InterruptKeeper::saved() const {
  std::vector<SavedInterrupt> saved;
  saved.reserve(records_.size());
  for (const auto& [number, record] : records_) saved.push_back(record);
  return saved;
}

void InterruptKeeper::restore(const std::vector<SavedInterrupt>& saved) {
  for (const SavedInterrupt& record : saved) records_[record.number] = record;
}

}  // namespace ka::line
