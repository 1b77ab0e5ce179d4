// SPDX-License-Identifier: Apache-2.0
#include "affinity/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "affinity/engine/apply.hpp"
#include "affinity/engine/sandbox.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/state/store.hpp"

namespace ka::engine {

Engine::Engine(policy::Topology topology, Options options, vmm::Roots roots, Hands hands,
               state::Store& store, board::Board& board, const log::Log& log,
               const base::Clock& clock)
    : topology_(std::move(topology)),
      options_(std::move(options)),
      roots_(std::move(roots)),
      proc_(roots_.proc),
      calls_(hands.calls),
      cpusets_(hands.cpusets),
      store_(store),
      board_(board),
      log_(log),
      clock_(clock),
      started_(clock.now()) {
  if (auto found = host::Cgroups::find(roots_.proc)) cgroups_.emplace(std::move(*found));
  subscribe();
}

Engine::~Engine() = default;

// --- what a sandbox's monitors tell
// -----------------------------------------------------------------

Outcome Engine::take_monitor_facts(std::string_view sandbox, vmm::MonitorFacts facts) {
  Sandbox* found = find(sandbox);
  if (found == nullptr) return {};
  found->set_monitor(std::move(facts));
  return run_one(*found);
}

/// Runs the line for one sandbox.
Outcome Engine::run_one(Sandbox& sandbox, Extent extent) {
  Outcome outcome = run({&sandbox}, extent);
  outcome += settle();
  return outcome;
}

/// What a run means for the sandboxes that had no part in it.
Outcome Engine::settle() {
  Outcome outcome = end_dead_sandboxes();
  outcome += level();
  return outcome;
}

/// A VMM that exited ends its sandbox; the CPUs that it owned may make room for others.
Outcome Engine::end_dead_sandboxes() {
  Outcome outcome;
  while (!dead_.empty()) {
    bool map_changed = false;
    for (const std::string& id : std::exchange(dead_, {})) {
      map_changed |= ledger_.apply({policy::ledger::Source::kState, policy::ledger::PodGone{id}})
                         .exclusive_map;
      follow_ledger(id);
      board_.notify(NotificationKind::kSandboxEnded, id, "VMM exited");
    }
    if (map_changed) outcome += run(changed_by_map({}));
  }
  return outcome;
}

// --- other triggers
// -------------------------------------------------------------------------------

/// The process of a VMM is the one that it was, and is a VMM (or the shim that stands for one that
/// is to come) by the same proof as when it was found. What cannot be seen now is kept.
bool Engine::is_adoptable(const policy::ledger::PodRecord& pod) {
  if (!pod.vmm) return true;
  const bool by_person = pod.source == policy::ledger::Source::kApi;
  const auto now =
      vmm::examine(roots_, pod.vmm->pid, by_person ? vmm::Word::kOperator : vmm::Word::kRuntime);
  const bool is_there = calls_.exists(pod.vmm->pid, pod.vmm->pid);
  if (!now && (now.error().code != base::ErrorCode::kGone || is_there)) return true;
  const bool is_same = now && now->id == *pod.vmm;
  if (is_same && (now->is_vmm || vmm::is_shim_of(roots_, *pod.vmm, pod.id))) return true;
  board_.notify(NotificationKind::kSandboxEnded, pod.id,
                is_same ? "process " + std::to_string(pod.vmm->pid) + " is not a VMM"
                        : "VMM exited while no daemon ran");
  drop_state(pod.id);
  return false;
}

Outcome Engine::run_all() {
  Affected all;
  for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox.get());
  Outcome outcome = run(std::move(all));
  outcome += settle();
  return outcome;
}

base::Result<Outcome> Engine::reconcile(std::string_view sandbox) {
  Sandbox* found = find(sandbox);
  if (found == nullptr) {
    return base::fail(base::ErrorCode::kNotFound, "no sandbox \"" + std::string(sandbox) + '"');
  }
  found->set_released(false);
  found->forgive();
  return run_one(*found);
}

Outcome Engine::reconcile_all() {
  dismiss_lost_state();
  for (const auto& [id, sandbox] : sandboxes_) {
    sandbox->set_released(false);
    sandbox->forgive();
  }
  return run_all();
}

Outcome Engine::vmm_ended(std::string_view sandbox, const policy::ProcessId& vmm) {
  const policy::ledger::PodRecord* pod = ledger_.find(sandbox);
  if (pod == nullptr || pod->vmm != vmm || find(sandbox) == nullptr) return {};
  dead_.insert(pod->id);
  return settle();
}

Outcome Engine::look_again(std::string_view sandbox) {
  Sandbox* found = find(sandbox);
  if (found == nullptr) return {};
  if (map_changed_ || unfinished_.contains(sandbox)) return run_one(*found, Extent::kNarrow);
  return repair({found});
}

Outcome Engine::check_drift() {
  retry_state();
  Affected drifted;
  base::ThreadStats stats(proc_.root());
  for (const auto& [id, sandbox] : sandboxes_) {
    if (!sandbox->looks_unchanged(eyes(stats), clock_.now())) drifted.push_back(sandbox.get());
  }
  Outcome outcome = repair(std::move(drifted));
  if (map_changed_ || just_opened_ || !unfinished_.empty()) outcome += finish({});
  return outcome;
}

Outcome Engine::cgroup_written(const std::string& directory) {
  Affected inside;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox->cgroup() == directory) inside.push_back(sandbox.get());
  }
  return repair(std::move(inside));
}

/// Runs the line for sandboxes in which something changed that no event told of, and counts the
/// threads whose mask someone else had changed.
Outcome Engine::repair(Affected sandboxes) {
  if (sandboxes.empty()) return {};
  int found = 0;
  for (const Sandbox* sandbox : sandboxes) {
    find_interrupt_drift(*sandbox);
    if (sandbox->left_alone()) continue;
    const int drifted = sandbox->count_changed_masks(calls_);
    if (drifted == 0) continue;
    found += drifted;
    board_.notify(NotificationKind::kDrift, sandbox->id(), messages::drift_text(drifted, "thread"));
  }
  Outcome outcome = run(std::move(sandboxes));
  outcome += settle();
  board_.counters().record_drift(found, outcome.failed);
  return outcome;
}

base::Result<Outcome> Engine::release(std::string_view sandbox) {
  Sandbox* found = find(sandbox);
  if (found == nullptr) {
    return base::fail(base::ErrorCode::kNotFound, "no sandbox \"" + std::string(sandbox) + '"');
  }
  found->set_released(true);
  board_.notify(NotificationKind::kReleased, found->id(),
                "threads may run wherever their cgroup allows");
  return run_one(*found);
}

Outcome Engine::release_all() {
  for (const auto& [id, sandbox] : sandboxes_) sandbox->set_released(true);
  board_.notify(NotificationKind::kReleased, {},
                "all threads may run wherever their cgroups allow");
  return run_all();
}

Outcome Engine::configure(Options options) {
  options_ = std::move(options);
  board_.notify(NotificationKind::kConfigured, {}, "configuration loaded");
  return run_all();
}

Outcome Engine::change_topology(policy::Topology topology) {
  topology_ = std::move(topology);
  board_.notify(NotificationKind::kTopologyChanged, {},
                "online CPUs: " + policy::format_list(topology_.online()));
  return run_all();
}

// --- what others may see
// --------------------------------------------------------------------------

std::vector<std::string> Engine::sandbox_ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, sandbox] : sandboxes_) ids.push_back(id);
  return ids;
}

std::optional<SandboxView> Engine::view(std::string_view sandbox) const {
  static const policy::plan::SandboxPlan kNoPlan;
  const Sandbox* found = find(sandbox);
  if (found == nullptr) return std::nullopt;
  const policy::ledger::PodRecord& pod = *ledger_.find(sandbox);
  return SandboxView{
      pod,
      found->plan() == nullptr ? kNoPlan : *found->plan(),
      found->threads(),
      found->seen().vcpus,
      settings_for(pod),
      found->seen().vcpu_source,
      found->seen().conflicts,
      found->cgroup(),
      found->cgroup_cpus(),
      found->keeper().in_charge(),
      found->keeper().theirs(),
      found->keeper().problem(),
      found->trouble(),
      found->released() || !options_.enable,
      options_.observe,
      board_.guest(sandbox),
      board_.memory(sandbox),
      found->interrupts().devices(),
      found->interrupts().views(),
      found->isolation(),
      std::chrono::duration_cast<std::chrono::seconds>(clock_.now().time_since_epoch()).count()};
}

const VcpuWaits& Engine::read_vcpu_waits() {
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox->plan() == nullptr) continue;
    waits_.read(roots_.proc, id, sandbox->threads(), *sandbox->plan());
  }
  return waits_;
}

// --- small parts
// ----------------------------------------------------------------------------------

/// What was told to a guest is on disk before anything follows from it.
void Engine::subscribe() {
  const auto on = [this](NotificationKind kind, auto handle) {
    subscriptions_.push_back(board_.feed().subscribe(kind, std::move(handle)));
  };
  const auto follow_sources = [this](const board::Notification&) {
    for (const auto& [source, view] : board_.sources()) ledger_.set_connected(source, view.up);
  };
  on(NotificationKind::kSourceUp, follow_sources);
  on(NotificationKind::kSourceDown, follow_sources);
  on(NotificationKind::kGuestTold, [this](const board::Notification& told) { save(told.sandbox); });
  on(NotificationKind::kGuestChanged, [this](const board::Notification& changed) {
    if (board_.guest(changed.sandbox) != nullptr) follow_isolation(*find(changed.sandbox));
  });
}

Sandbox* Engine::find(std::string_view sandbox) const {
  const auto found = sandboxes_.find(sandbox);
  return found == sandboxes_.end() ? nullptr : found->second.get();
}

Eyes Engine::eyes(base::ThreadStats& stats) const {
  return {roots_, proc_, cgroups_, calls_, stats};
}

/// Makes or drops what is kept beside the ledger's record of a pod.
void Engine::follow_ledger(const std::string& pod) {
  const policy::ledger::PodRecord* record = ledger_.find(pod);
  if (record == nullptr) {
    if (const Sandbox* gone = find(pod)) count_floating(*gone, -1);
    sandboxes_.erase(pod);
    board_.remove_sandbox(pod);
    waits_.forget(pod);
    drop_state(pod);
    return;
  }
  if (record->vmm && !sandboxes_.contains(pod)) {
    sandboxes_[pod] = std::make_unique<Sandbox>(pod);
    board_.add_sandbox(pod);
  }
}

/// A sandbox that is forgotten while its VM lives gets its threads back.
void Engine::let_go(Sandbox& sandbox) {
  sandbox.set_released(true);
  run({&sandbox});
  dead_.erase(sandbox.id());
}

}  // namespace ka::engine
