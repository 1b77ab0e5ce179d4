// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/pass.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "affinity/line/planning.hpp"
#include "affinity/line/sandbox.hpp"

namespace ka::line {
namespace {

using base::ErrorCode;
using board::NotificationKind;

constexpr int kMaxPasses = 3;  ///< plan again this often when something changed under a run
constexpr int kMaxReads = 2;   ///< read a sandbox this often when something of it cannot be read

int& error_of(Outcome& outcome, ErrorCode code) {
  switch (code) {
    case ErrorCode::kPermission:
      return outcome.errors.permission;
    case ErrorCode::kTransient:
      return outcome.errors.transient;
    default:
      return outcome.errors.other;
  }
}

int count_failed(const Sandbox& sandbox) {
  return static_cast<int>(std::ranges::count_if(sandbox.threads(), [](const ThreadView& thread) {
    return thread.managed && !thread.problem.empty();
  }));
}

}  // namespace

Pass::Pass(Node& node, Extent extent)
    : node_(node),
      extent_(node.registry.gate().may_widen() ? extent : Extent::kNarrow),
      stats_(node.proc.root()) {
  node_.refresh_cgroups();
}

void Pass::run(Affected sandboxes) {
  check_unsettled(node_, stats_);
  for (int pass = 0; pass < kMaxPasses && !sandboxes.empty(); ++pass) {
    narrow_unseen(observe(sandboxes));
    for (Sandbox* sandbox : sandboxes) plan(node_, *sandbox);
    outcome_.planned += static_cast<int>(sandboxes.size());
    sandboxes = extent_ == Extent::kAll ? apply_all(sandboxes) : apply_to(sandboxes);
  }
  for (const Sandbox* sandbox : sandboxes) outcome_.failed += count_failed(*sandbox);
}

void Pass::narrow(Sandbox& sandbox) {
  if (!narrows(sandbox)) return;
  Affected seen{&sandbox};
  narrow_unseen(observe(seen));
  if (seen.empty()) return;
  plan(node_, sandbox);
  ++outcome_.planned;
  apply_to({&sandbox});
  record_trespass(node_, sandbox);
}

bool Pass::narrows(Sandbox& sandbox) {
  if (sandbox.plan() == nullptr) return true;
  plan(node_, sandbox);
  return interrupts_must_leave(sandbox) ||
         !policy::plan::diff(placements_to_write(sandbox)).empty();
}

// --- observe

Affected Pass::observe(Affected& sandboxes) {
  Affected unseen;
  std::erase_if(sandboxes, [&](Sandbox* sandbox) {
    if (observe_one(*sandbox)) return false;
    if (!ended_.contains(sandbox->id())) unseen.push_back(sandbox);
    return true;
  });
  return unseen;
}

bool Pass::observe_one(Sandbox& sandbox) {
  const bool was_seen = sandbox.trouble().empty();
  const auto seen = observe_fully(sandbox);
  if (!seen && has_ended(node_, sandbox, seen.error())) {
    ended_.insert(sandbox.id());
    return false;
  }
  if (!sandbox.trouble().empty()) ++outcome_.errors.unreadable;
  report_trouble(sandbox, was_seen);
  for (const std::string& foreign : sandbox.new_foreign()) {
    node_.board.notify(NotificationKind::kForeignProcess, sandbox.id(),
                       foreign + ": not placed with it");
  }
  if (seen) record_trespass(node_, sandbox);
  return seen.has_value();
}

/// What cannot be read is asked for again at once: a thread that was not seen is not written to,
/// and would stay where it is until the next pass.
base::Result<void> Pass::observe_fully(Sandbox& sandbox) {
  base::Result<void> seen;
  for (int attempt = 0; attempt < kMaxReads; ++attempt) {
    seen = sandbox.observe(node_.probe(stats_), node_.pod_of(sandbox), cgroup_mode(node_, sandbox));
    const bool is_gone = base::is_gone(seen);
    if (is_gone || sandbox.trouble().empty()) break;
  }
  return seen;
}

/// Once when it begins and once when it ends.
void Pass::report_trouble(const Sandbox& sandbox, bool was_seen) {
  const bool is_seen = sandbox.trouble().empty();
  if (is_seen == was_seen) return;
  node_.board.notify(
      is_seen ? NotificationKind::kSeen : NotificationKind::kUnseen, sandbox.id(),
      is_seen ? "readable again"
              : "not completely readable, what is known of it stays: " + sandbox.trouble(),
      sandbox.trouble());
}

/// A zombie, or another process with its pid, would have returned more than "no such file".
bool has_ended(const Node& node, const Sandbox& sandbox, const base::Error& error) {
  if (!is_gone(error)) return false;
  const auto& vmm = node.pod_of(sandbox).vmm;
  return error.number == 0 || !vmm || !node.calls.exists(vmm->pid, vmm->pid);
}

policy::CpuSet touched_by(const Node& node, const Sandbox& sandbox) {
  const policy::CpuSet foreign = node.foreign_to(sandbox);
  policy::CpuSet touched;
  for (const ThreadView& thread : sandbox.threads()) touched |= thread.actual & foreign;
  return touched;
}

void record_trespass(Node& node, const Sandbox& sandbox) {
  const auto now = node.clock.now();
  node.board.trespasses().record(sandbox.id(), touched_by(node, sandbox),
                                 node.cause.value_or(board::Cause{"drift", now}), now);
}

// --- apply

/// Another pod's CPUs are not for a thread that was there before it could not be listed.
void Pass::narrow_unseen(const Affected& sandboxes) {
  for (Sandbox* sandbox : sandboxes) {
    if (sandbox->plan() != nullptr) plan(node_, *sandbox);
  }
  write_masks(sandboxes);
}

/// Between a cgroup's two writes its threads find their places. A cgroup that was narrowed is
/// observed once more: the kernel may have forgotten what its threads had.
Affected Pass::apply_all(const Affected& sandboxes) {
  for (Sandbox* sandbox : sandboxes) widen_cgroup(*sandbox);
  Affected again = apply_to(sandboxes);
  for (Sandbox* sandbox : sandboxes) {
    const bool known = std::ranges::find(again, sandbox) != again.end();
    if (narrow_cgroup(*sandbox) && !known) again.push_back(sandbox);
  }
  return again;
}

/// Makes the writes that bring the sandboxes to their plans, threads first; those in which
/// something changed meanwhile come back.
Affected Pass::apply_to(const Affected& sandboxes) {
  Affected again = write_masks(sandboxes);
  for (Sandbox* sandbox : sandboxes) {
    place_interrupts(*sandbox);
    place_classes(*sandbox);
  }
  return again;
}

Affected Pass::write_masks(const Affected& sandboxes) {
  Placements placements;
  std::map<policy::ThreadKey, Sandbox*> owner;
  for (Sandbox* sandbox : sandboxes) {
    auto to_write = placements_to_write(*sandbox);
    if (!to_write.empty() && sandbox->prepare()) node_.registry.save(sandbox->id());
    for (auto& placement : to_write) {
      owner[placement.key] = sandbox;
      placements.push_back(std::move(placement));
    }
  }
  std::set<Sandbox*> again;
  const auto writes = policy::plan::diff(placements);
  for (const auto& write : writes) {
    if (!node_.is_given_back(*owner[write.key])) owner[write.key]->set_placed();
  }
  auto results = apply(writes, node_.calls, stats_);
  for (std::size_t i = 0; i < results.size(); ++i) {
    WriteResult& result = results[i];
    Sandbox& sandbox = *owner[result.key];
    if (node_.is_given_back(sandbox)) accept_given_back(writes[i], sandbox, result);
    record(sandbox, result);
    if (result.unsettled) node_.unsettled[result.key] = {sandbox.id(), writes[i]};
    if (result.status == WriteResult::Status::kRetry) again.insert(&sandbox);
  }
  return {again.begin(), again.end()};
}

/// A thread with a mask of more than its cgroup allows follows that: it gets the CPUs of a
/// partition that is still to be dissolved when they return to it.
void Pass::accept_given_back(const policy::plan::Write& write, Sandbox& sandbox,
                             WriteResult& result) {
  const bool is_narrower = result.status == WriteResult::Status::kRetry && !result.actual.empty();
  if (write.follows() && is_narrower) result.status = WriteResult::Status::kDone;
  if (result.status == WriteResult::Status::kDone) sandbox.set_freed(result.key);
}

Pass::Placements Pass::placements_to_write(const Sandbox& sandbox) {
  const bool give_back = node_.is_given_back(sandbox);
  if (give_back ? sandbox.left_alone() : node_.options.observe) return {};
  if (give_back) return within(extent_, sandbox, originals_of(sandbox));
  Placements placements = within(extent_, sandbox, sandbox.placements());
  std::ranges::move(within(Extent::kNarrow, sandbox, placements_of_unseen(sandbox)),
                    std::back_inserter(placements));
  return placements;
}

/// Who has taken the CPUs of a pod that ends may be there before its VM has ended.
Pass::Placements Pass::originals_of(const Sandbox& sandbox) const {
  Placements placements = sandbox.placements_of_originals();
  if (!sandbox.unlisted()) return placements;
  const policy::CpuSet foreign = node_.foreign_to(sandbox);
  for (auto& placement : placements) {
    placement.wanted -= foreign;
    placement.whole -= foreign;
  }
  return placements;
}

/// What an extent leaves of placements.
Pass::Placements Pass::within(Extent extent, const Sandbox& sandbox, Placements placements) const {
  const policy::CpuSet foreign = node_.foreign_to(sandbox);
  for (auto& placement : placements) {
    placement.trespassing = placement.actual.intersects(foreign);
  }
  if (!node_.registry.gate().may_widen()) return policy::plan::shrunk(std::move(placements));
  return extent == Extent::kNarrow ? policy::plan::narrowed(std::move(placements)) : placements;
}

/// Of threads that were seen before and could not be at the last observation, those that are still
/// the same and whose masks can be read now. What their cgroup allows is not known.
Pass::Placements Pass::placements_of_unseen(const Sandbox& sandbox) {
  Placements placements;
  for (const ThreadView& thread : sandbox.threads()) {
    if (thread.seen || !thread.managed) continue;
    const policy::ThreadKey& key = thread.facts.key;
    const auto stat = stats_.read(key.pid, key.tid);
    if (!stat || stat->start_time != key.start_time) continue;
    if (auto actual = node_.calls.get(key.tid))
      placements.push_back({key, thread.wanted, std::move(*actual), {}});
  }
  return placements;
}

void Pass::record(Sandbox& sandbox, const WriteResult& result) {
  ++outcome_.writes;
  const std::string thread = "thread " + std::to_string(result.key.tid);
  switch (result.status) {
    case WriteResult::Status::kDone:
      break;
    case WriteResult::Status::kGone:
      ++outcome_.gone;
      if (result.reverted) report_undone(node_, sandbox.id(), result.key.tid, "mask");
      break;
    case WriteResult::Status::kRetry:
      ++error_of(outcome_, result.error.code);
      break;
    case WriteResult::Status::kRefused:
      ++error_of(outcome_, result.error.code);
      ++outcome_.failed;
      node_.board.notify(NotificationKind::kUnmanaged, sandbox.id(),
                         thread + " cannot be placed and is left alone: " + result.error.message,
                         result.error.message);
      break;
  }
  sandbox.record(result);
}

}  // namespace ka::line
