// SPDX-License-Identifier: Apache-2.0
// The line: observe -> plan -> diff -> apply -> read again, for a set of sandboxes at once, so that
// what one of them gives up is free before another one takes it.
#include <algorithm>
#include <map>

#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"

namespace ka::engine {
namespace {

using base::ErrorCode;

constexpr int kMaxPasses = 3;  ///< plan again this often when something changed under a run

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

void add_part(std::vector<int>& load, const policy::plan::SandboxPlan& plan, int each) {
  std::vector<int> part;
  policy::plan::add_floating_load(part, plan);
  if (load.size() < part.size()) load.resize(part.size());
  for (std::size_t cpu = 0; cpu < part.size(); ++cpu) load[cpu] += each * part[cpu];
}

}  // namespace

Outcome Engine::run(Affected sandboxes, Extent extent) {
  const auto start = clock_.now();
  if (!gate_.may_widen()) extent = Extent::kNarrow;
  Outcome outcome;
  const Affected all = sandboxes;
  base::ThreadStats stats(proc_.root());
  for (int pass = 0; pass < kMaxPasses && !sandboxes.empty(); ++pass) {
    sandboxes = observe(std::move(sandboxes), stats, outcome);
    for (Sandbox* sandbox : sandboxes) plan(*sandbox);
    outcome.planned += static_cast<int>(sandboxes.size());
    sandboxes = extent == Extent::kAll ? apply_all(sandboxes, stats, outcome)
                                       : apply_to(sandboxes, extent, stats, outcome);
  }
  for (const Sandbox* sandbox : all) see_trespass(*sandbox);
  for (Sandbox* sandbox : all) {
    sandbox->remember_masks();
    if (extent == Extent::kAll) {
      if (!dead_.contains(sandbox->id())) follow_isolation(*sandbox);
      unfinished_.erase(sandbox->id());
      sandbox->set_left_alone(may_be_left_alone(*sandbox));
    }
    if (!dead_.contains(sandbox->id())) save(sandbox->id());
    board_.notify(NotificationKind::kSandboxPlanned, sandbox->id(), {});
  }
  for (const Sandbox* sandbox : sandboxes) {
    outcome.failed +=
        static_cast<int>(std::ranges::count_if(sandbox->threads(), [](const ThreadView& thread) {
          return thread.managed && !thread.problem.empty();
        }));
  }
  outcome.duration = clock_.now() - start;
  outcome.runs = 1;
  board_.counters().record(outcome);
  board_.notify(NotificationKind::kLineRun, {}, {});
  return outcome;
}

Engine::Affected Engine::observe(Affected sandboxes, base::ThreadStats& stats, Outcome& outcome) {
  std::erase_if(sandboxes,
                [&](Sandbox* sandbox) { return !observe_one(*sandbox, stats, outcome); });
  return sandboxes;
}

bool Engine::observe_one(Sandbox& sandbox, base::ThreadStats& stats, Outcome& outcome) {
  const bool was_seen = sandbox.trouble().empty();
  const auto seen = sandbox.observe(eyes(stats), *ledger_.find(sandbox.id()), cgroup_mode(sandbox));
  if (!seen && has_ended(sandbox, seen.error())) {
    dead_.insert(sandbox.id());
    return false;
  }
  if (!sandbox.trouble().empty()) ++outcome.errors.unreadable;
  report_trouble(sandbox, was_seen);
  if (seen) see_trespass(sandbox);
  return seen.has_value();
}

/// "No such file" alone is not believed: the kernel must know no such process either. Of a zombie,
/// and of another process with its number, more than that was read.
bool Engine::has_ended(const Sandbox& sandbox, const base::Error& error) const {
  if (error.code != ErrorCode::kGone) return false;
  const auto& vmm = ledger_.find(sandbox.id())->vmm;
  return error.number == 0 || !vmm || !calls_.exists(vmm->pid, vmm->pid);
}

/// Once when it begins and once when it ends.
void Engine::report_trouble(const Sandbox& sandbox, bool was_seen) {
  const bool is_seen = sandbox.trouble().empty();
  if (is_seen == was_seen) return;
  board_.notify(
      is_seen ? NotificationKind::kSeen : NotificationKind::kUnseen, sandbox.id(),
      is_seen ? "readable again" : "unreadable, keeping its last known state: " + sandbox.trouble(),
      sandbox.trouble());
}

void Engine::plan(Sandbox& sandbox) {
  policy::plan::SandboxPlan fresh = planned(sandbox);
  // Where it is not time to write the cgroup, a plan inside what it allows now.
  if (!sandbox.keeper().accepts(fresh.cgroup, clock_.now())) fresh = planned(sandbox);
  count_floating(sandbox, -1);
  sandbox.take_plan(std::move(fresh));
  count_floating(sandbox, 1);
}

/// Adds a sandbox's part to the load of all, or takes it off again (`each` = -1).
void Engine::count_floating(const Sandbox& sandbox, int each) {
  if (sandbox.plan() != nullptr) add_part(floating_load_, *sandbox.plan(), each);
}

policy::plan::SandboxPlan Engine::planned(const Sandbox& sandbox) const {
  const policy::ledger::PodRecord& pod = *ledger_.find(sandbox.id());
  return policy::plan::plan_sandbox(node_view(sandbox.id()), sandbox.facts(pod), settings_for(pod),
                                    sandbox.plan());
}

/// Between a cgroup's two writes its threads find their places. A cgroup that was narrowed is
/// looked at once more: the kernel may have forgotten what its threads had.
Engine::Affected Engine::apply_all(const Affected& sandboxes, base::ThreadStats& stats,
                                   Outcome& outcome) {
  for (Sandbox* sandbox : sandboxes) widen_cgroup(*sandbox, stats, outcome);
  Affected again = apply_to(sandboxes, Extent::kAll, stats, outcome);
  for (Sandbox* sandbox : sandboxes) {
    const bool known = std::ranges::find(again, sandbox) != again.end();
    if (narrow_cgroup(*sandbox, outcome) && !known) again.push_back(sandbox);
  }
  return again;
}

/// Makes the writes that bring the sandboxes to their plans, threads first; those in which
/// something changed meanwhile come back.
Engine::Affected Engine::apply_to(const Affected& sandboxes, Extent extent,
                                  base::ThreadStats& stats, Outcome& outcome) {
  std::vector<policy::plan::ThreadPlacement> placements;
  std::map<policy::ThreadKey, Sandbox*> owner;
  for (Sandbox* sandbox : sandboxes) {
    for (auto& placement : placements_to_write(*sandbox, extent)) {
      owner[placement.key] = sandbox;
      placements.push_back(std::move(placement));
    }
  }
  std::set<Sandbox*> again;
  for (const Applied& applied : apply(policy::plan::diff(placements), calls_, stats)) {
    Sandbox& sandbox = *owner[applied.key];
    note(sandbox, applied, outcome);
    if (applied.fate == Applied::Fate::kRetry) again.insert(&sandbox);
  }
  for (Sandbox* sandbox : sandboxes) place_interrupts(*sandbox, extent, outcome);
  return {again.begin(), again.end()};
}

std::vector<policy::plan::ThreadPlacement> Engine::placements_to_write(const Sandbox& sandbox,
                                                                       Extent extent) const {
  const bool give_back = is_given_back(sandbox);
  if (give_back ? sandbox.left_alone() : options_.observe) return {};
  auto placements = give_back ? sandbox.placements_of_originals() : sandbox.placements();
  const policy::CpuSet foreign = ledger_.exclusive_to_others(sandbox.id());
  for (auto& placement : placements) {
    placement.trespassing = placement.actual.intersects(foreign);
  }
  if (!gate_.may_widen()) return policy::plan::shrunk(std::move(placements));
  return extent == Extent::kNarrow ? policy::plan::narrowed(std::move(placements)) : placements;
}

void Engine::note(Sandbox& sandbox, const Applied& applied, Outcome& outcome) {
  ++outcome.writes;
  switch (applied.fate) {
    case Applied::Fate::kDone:
      break;
    case Applied::Fate::kGone:
      ++outcome.gone;
      if (applied.taken_back) {
        board_.notify(NotificationKind::kTakenBack, sandbox.id(),
                      "thread " + std::to_string(applied.key.tid) +
                          " was reused by another process while it was placed: that process may "
                          "run everywhere again");
      }
      break;
    case Applied::Fate::kRetry:
      ++error_of(outcome, applied.error.code);
      break;
    case Applied::Fate::kRefused:
      ++error_of(outcome, applied.error.code);
      ++outcome.failed;
      board_.notify(NotificationKind::kUnmanaged, sandbox.id(),
                    "thread " + std::to_string(applied.key.tid) +
                        " cannot be placed and is left alone: " + applied.error.message,
                    applied.error.message);
      break;
  }
  sandbox.note(applied);
}

/// By the masks that were read last.
void Engine::see_trespass(const Sandbox& sandbox) {
  const policy::CpuSet foreign = ledger_.exclusive_to_others(sandbox.id());
  policy::CpuSet touched;
  for (const ThreadView& thread : sandbox.threads()) touched |= thread.actual & foreign;
  const auto now = clock_.now();
  board_.trespasses().see(sandbox.id(), touched, cause_.value_or(board::Cause{"drift", now}), now);
}

policy::plan::NodeView Engine::node_view(const std::string& sandbox) const {
  policy::plan::NodeView view{topology_,
                              ledger_.shared_pool(topology_.online()),
                              ledger_.exclusive_to_others(sandbox),
                              {},
                              ledger_.exclusive_to(sandbox)};
  const policy::ledger::PodRecord* pod = ledger_.find(sandbox);
  if (settings_for(*pod).vcpu_pinning == policy::plan::VcpuPinning::kBalanced) {
    const policy::plan::SandboxPlan* own = find(sandbox)->plan();
    view.floating_load = floating_load_;
    if (own != nullptr) add_part(view.floating_load, *own, -1);
  }
  return view;
}

/// "balanced": a neighbour came or went, and floating vCPUs that share a CPU can have one of their
/// own. What waits for its second half is left to that.
bool Engine::should_level(const Sandbox& sandbox) const {
  const policy::plan::SandboxPlan* plan = sandbox.plan();
  if (plan == nullptr || map_changed_ || unfinished_.contains(sandbox.id())) return false;
  const policy::ledger::PodRecord& pod = *ledger_.find(sandbox.id());
  return settings_for(pod).vcpu_pinning == policy::plan::VcpuPinning::kBalanced &&
         policy::plan::crowded(node_view(sandbox.id()), *plan) && planned(sandbox) != *plan;
}

bool Engine::levels() const {
  const auto balances = [](const policy::plan::Settings& settings) {
    return settings.vcpu_pinning == policy::plan::VcpuPinning::kBalanced;
  };
  return balances(options_.settings) ||
         std::ranges::any_of(options_.by_handler,
                             [&](const auto& entry) { return balances(entry.second); });
}

Outcome Engine::level() {
  Outcome outcome;
  bool moved = levels();
  for (int pass = 0; pass < kMaxPasses && moved; ++pass) {
    moved = false;
    for (const auto& [id, sandbox] : sandboxes_) {
      if (!should_level(*sandbox)) continue;
      outcome += run({sandbox.get()});
      moved = true;
    }
  }
  return outcome;
}

const policy::plan::Settings& Engine::settings_for(const policy::ledger::PodRecord& pod) const {
  const auto found = options_.by_handler.find(pod.handler);
  return found == options_.by_handler.end() ? options_.settings : found->second;
}

}  // namespace ka::engine
