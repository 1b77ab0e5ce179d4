// SPDX-License-Identifier: Apache-2.0
// How events enter the line: checked where a person sent them, folded into the ledger, and what
// each means for the sandboxes of the node.
#include <string>
#include <utility>

#include "affinity/engine/admission.hpp"
#include "affinity/engine/check.hpp"
#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"
#include "affinity/messages/events.hpp"
#include "policy/plan/overrides.hpp"

namespace ka::engine {
namespace {

/// The other pod whose VM the process is known to be; null: none.
const policy::ledger::PodRecord* holder_of_vmm(const policy::ledger::PodSeen& seen,
                                               const policy::ledger::Ledger& ledger) {
  const policy::ledger::PodRecord* known = ledger.find(seen.id);
  if (!seen.vmm || (known != nullptr && known->vmm == seen.vmm)) return nullptr;
  for (const auto& [id, pod] : ledger.pods()) {
    if (id != seen.id && pod.vmm == seen.vmm) return &pod;
  }
  return nullptr;
}

std::string title(const std::string& id, const std::string& name) {
  return '"' + id + '"' + (name.empty() ? "" : " (" + name + ')');
}

template <typename Duration>
std::int64_t seconds_of(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

base::Result<Outcome> Engine::submit(policy::ledger::Event event) {
  if (auto good = admit(event, ledger_); !good) return unexpected(std::move(good.error()));
  auto whole = identified(std::move(event));
  if (!whole) return unexpected(std::move(whole.error()));
  if (auto good = check_event(*whole, topology_, ledger_, roots_); !good) {
    return unexpected(std::move(good.error()));
  }
  if (auto* given = std::get_if<policy::ledger::OverrideSet>(&whole->body)) {
    if (auto good = check_by_hand(*given); !good) return unexpected(std::move(good.error()));
    stamp(*given);
  }
  if (const auto* gone = std::get_if<policy::ledger::PodGone>(&whole->body)) {
    if (auto good = check_removal(gone->id); !good) return unexpected(std::move(good.error()));
  }
  return handle(*whole);
}

/// A person names a VMM by its number: which process that is is decided here, once.
base::Result<policy::ledger::Event> Engine::identified(policy::ledger::Event event) const {
  auto* seen = std::get_if<policy::ledger::PodSeen>(&event.body);
  if (seen == nullptr || !seen->vmm) return event;
  const auto vmm = vmm_named(roots_, seen->vmm->pid);
  if (!vmm) return unexpected(vmm.error());
  seen->vmm = *vmm;
  return event;
}

/// Its threads get back what they had, which may be more than they have.
base::Result<void> Engine::check_removal(const std::string& id) const {
  if (gate_.may_widen() || find(id) == nullptr) return {};
  return base::fail(
      base::ErrorCode::kUnavailable,
      "sandbox \"" + id + "\" cannot be released yet: " + messages::waiting_text(gate_));
}

base::Result<void> Engine::check_by_hand(const policy::ledger::OverrideSet& event) const {
  const Sandbox* sandbox = find(event.sandbox);
  if (sandbox == nullptr) {
    return base::fail(base::ErrorCode::kInvalid,
                      '"' + event.sandbox + "\" is not a VM sandbox: it has no threads to place");
  }
  const policy::ledger::PodRecord& pod = *ledger_.find(event.sandbox);
  if (auto good = check_override(event.value, *sandbox, pod, ledger_); !good) return good;
  const bool is_taken_back = event.value.cpus.empty();
  if (event.force || is_taken_back) return {};
  return check_taken(event.value, *sandbox, pod);
}

/// What a pin takes from exclusive containers is theirs by the plan without any pins: those that
/// are in force have taken something already.
base::Result<void> Engine::check_taken(const policy::Override& given, const Sandbox& sandbox,
                                       const policy::ledger::PodRecord& pod) const {
  policy::SandboxFacts facts = sandbox.facts(pod);
  facts.overrides.clear();
  const auto unpinned =
      policy::plan::plan_sandbox(node_view(sandbox.id()), facts, settings_for(pod), sandbox.plan());
  const policy::CpuSet taken = policy::plan::taken_by_hand(given, unpinned);
  if (taken.empty()) return {};
  return base::fail(base::ErrorCode::kConflict,
                    "cpus: " + policy::format_list(taken) +
                        " belongs to a dedicated vCPU, and its container would lose isolation "
                        "(--force overrides)");
}

void Engine::stamp(policy::ledger::OverrideSet& event) const {
  event.value.since = seconds_of(clock_.wall().time_since_epoch());
  if (event.lasts_for) {
    event.value.until = seconds_of(clock_.now().time_since_epoch()) + *event.lasts_for;
  }
}

Outcome Engine::end_pins() {
  std::vector<policy::ledger::Event> ended;
  const std::int64_t now = seconds_of(clock_.now().time_since_epoch());
  for (const auto& [id, pod] : ledger_.pods()) {
    for (const policy::ledger::Pin& pin : pod.overrides) {
      if (!pin.until || *pin.until > now) continue;
      policy::ledger::OverrideSet event{.sandbox = id, .value = pin};
      event.value.cpus = {};
      ended.push_back({policy::ledger::Source::kApi, std::move(event)});
    }
  }
  return ended.empty() ? Outcome{} : handle(ended);
}

Outcome Engine::handle(const std::vector<policy::ledger::Event>& events) {
  const Changes changes = take(events);
  Outcome outcome = changes.pods.empty() ? Outcome{} : follow(changes);
  if (just_opened_) outcome += finish({});
  cause_.reset();
  return outcome;
}

Outcome Engine::follow(const Changes& changes) {
  for (const std::string& id : changes.pods) {
    if (ledger_.find(id) != nullptr && find(id) == nullptr) save(id);
  }
  Outcome outcome = run(affected_by(changes));
  outcome += settle();
  return outcome;
}

/// They come from one source, at one moment.
Engine::Changes Engine::take(const std::vector<policy::ledger::Event>& events) {
  Changes changes;
  if (events.empty()) return changes;
  cause_ =
      board::Cause{std::string(policy::ledger::source_name(events.front().source)), clock_.now()};
  for (const policy::ledger::Event& event : events) {
    const policy::ledger::Change change = take(event);
    if (!change.any) continue;
    changes.pods.insert(change.sandbox);
    changes.exclusive_map |= change.exclusive_map;
    changes.taken |= change.taken;
    ownership_.enter(change.taken, clock_.now());
  }
  if (changes.exclusive_map) {
    for (const auto& [id, sandbox] : sandboxes_) see_trespass(*sandbox);
  }
  return changes;
}

/// Folds an event into the ledger and into what is kept beside it. One VM is one sandbox: a second
/// pod with the same is known without it.
policy::ledger::Change Engine::take(const policy::ledger::Event& event) {
  const auto* seen = std::get_if<policy::ledger::PodSeen>(&event.body);
  const auto* holder = seen == nullptr ? nullptr : holder_of_vmm(*seen, ledger_);
  if (holder != nullptr) {
    const std::string text = "process " + std::to_string(seen->vmm->pid) +
                             " is the VM of sandbox " + title(holder->id, holder->pod_name) +
                             ", not of " + title(seen->id, seen->pod_name);
    board_.notify(NotificationKind::kVmmRefused, seen->id, text, cause_->source);
    log_.warning("two pods claim one VM", {{"sandbox", seen->id}, {"reason", text}});
    policy::ledger::Event without = event;
    std::get<policy::ledger::PodSeen>(without.body).vmm.reset();
    return take(without);
  }
  ++board_.counters().events[cause_->source];
  if (const auto good = admit(event, ledger_); !good) {
    log_.warning("event rejected", {{"source", cause_->source}, {"reason", good.error().message}});
    return {};
  }
  if (const auto* gone = std::get_if<policy::ledger::PodGone>(&event.body)) {
    if (Sandbox* sandbox = find(gone->id)) let_go(*sandbox);
  }
  policy::ledger::Change change = ledger_.apply(event);
  follow_gate(event);
  if (change.any) {
    follow_ledger(change.sandbox);
    board_.notify(board::kind_of(event.body), change.sandbox, messages::event_text(event, ledger_),
                  cause_->source, board::container_of(event.body));
  }
  return change;
}

void Engine::follow_gate(const policy::ledger::Event& event) {
  if (gate_.may_widen()) return;
  if (const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body)) {
    step_gate([&] { gate_.told_of(seen->sandbox); });
  }
  if (std::holds_alternative<policy::ledger::KubeletSeen>(event.body)) source_spoke(event.source);
}

/// The sandboxes concerned, and those whose plan another map of owners changes: what they must
/// leave, they leave before anyone else is let onto it.
Engine::Affected Engine::affected_by(const Changes& changes) const {
  Affected affected;
  for (const std::string& id : changes.pods) {
    if (Sandbox* found = find(id)) affected.push_back(found);
  }
  if (!changes.exclusive_map) return affected;
  const Affected others = changed_by_map(changes.pods);
  affected.insert(affected.end(), others.begin(), others.end());
  return affected;
}

/// The other sandboxes are planned from what was last seen of them, and looked at and written to
/// only where that makes a difference.
Engine::Affected Engine::changed_by_map(const Ids& apart_from) const {
  Affected changed;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (apart_from.contains(id)) continue;
    const policy::plan::SandboxPlan* before = sandbox->plan();
    const bool as_planned = before != nullptr && !unfinished_.contains(id);
    if (!as_planned || planned(*sandbox) != *before) changed.push_back(sandbox.get());
  }
  return changed;
}

}  // namespace ka::engine
