// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/requests.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <variant>

#include "affinity/line/check.hpp"
#include "affinity/line/planning.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/messages/terms.hpp"
#include "affinity/registry/admission.hpp"
#include "affinity/registry/ended_pins.hpp"
#include "policy/plan/overrides.hpp"
#include "vmm/procfs/relatives.hpp"

namespace ka::line {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using policy::ledger::Event;
using policy::ledger::OverrideSet;

template <typename Duration>
std::int64_t seconds_of(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

Result<Outcome> Requests::submit(Event event) {
  if (auto good = registry::admit(event, node_.ledger()); !good) return unexpected(good.error());
  auto whole = identified(std::move(event));
  if (!whole) return unexpected(whole.error());
  if (auto good = check_event(*whole, node_.topology, node_.ledger(), node_.roots); !good) {
    return unexpected(good.error());
  }
  if (auto* pin = std::get_if<OverrideSet>(&whole->body)) {
    if (auto good = check_pin(*pin); !good) return unexpected(good.error());
    stamp(*pin);
  }
  if (const auto* gone = std::get_if<policy::ledger::PodGone>(&whole->body)) {
    if (auto good = check_removal(gone->id); !good) return unexpected(good.error());
  }
  return line_.handle(*whole);
}

/// A process is named by its number: which one that is is decided here, once. A proxy that ended
/// before its report was read is none.
Result<Event> Requests::identified(Event event) const {
  auto* seen = std::get_if<policy::ledger::PodSeen>(&event.body);
  if (seen != nullptr && seen->proxy) {
    const auto proxy = vmm::find_proxy(node_.roots.proc, seen->proxy->pid);
    if (!proxy && !is_gone(proxy)) return unexpected(proxy.error());
    seen->proxy = proxy ? std::optional(*proxy) : std::nullopt;
  }
  if (seen == nullptr || !seen->vmm) return event;
  const auto vmm = vmm_named(node_.roots, seen->vmm->pid);
  if (!vmm) return unexpected(vmm.error());
  seen->vmm = *vmm;
  return event;
}

/// Its threads get their original masks, which may be wider.
Result<void> Requests::check_removal(const std::string& id) const {
  const auto& gate = node_.registry.gate();
  if (gate.may_widen() || node_.sandboxes.find(id) == nullptr) return {};
  return fail(ErrorCode::kUnavailable,
              "sandbox \"" + id + "\" cannot be released yet: " + messages::waiting_text(gate));
}

Result<void> Requests::check_pin(const OverrideSet& event) const {
  const Sandbox* sandbox = node_.sandboxes.find(event.sandbox);
  if (sandbox == nullptr) {
    return fail(ErrorCode::kInvalid,
                '"' + event.sandbox + "\" is not a VM sandbox: it has no threads to place");
  }
  auto good =
      check_override(event.value, *sandbox, node_.pod_of(*sandbox), node_.topology, node_.ledger());
  const bool is_withdrawn = event.value.cpus.empty();
  if (!good || event.force || is_withdrawn) return good;
  return check_lost(event.value, *sandbox);
}

/// What a pin takes from exclusive containers is theirs by the plan without any pins: those that
/// are in force have taken something already.
Result<void> Requests::check_lost(const policy::Override& given, const Sandbox& sandbox) const {
  const policy::ledger::PodRecord& pod = node_.pod_of(sandbox);
  policy::SandboxFacts facts = sandbox.facts(pod);
  facts.overrides.clear();
  const auto unpinned = policy::plan::plan_sandbox(node_view(node_, sandbox), facts,
                                                   node_.settings_for(pod), sandbox.plan());
  const policy::CpuSet taken = policy::plan::lost_by_pin(given, unpinned);
  if (taken.empty()) return {};
  return fail(ErrorCode::kConflict,
              "cpus: " + messages::cpus_text(taken) + (taken.size() == 1 ? " belongs" : " belong") +
                  " to a dedicated vCPU, and its container would lose isolation "
                  "(--force overrides)");
}

void Requests::stamp(OverrideSet& event) const {
  event.value.since = seconds_of(node_.clock.wall().time_since_epoch());
  if (event.lasts_for) {
    event.value.until = seconds_of(node_.clock.now().time_since_epoch()) + *event.lasts_for;
  }
}

Outcome Requests::end_pins() {
  std::vector<Event> ended;
  for (const auto& [id, pod] : node_.ledger().pods()) {
    std::ranges::move(registry::ended_pins(pod, node_.clock.now()), std::back_inserter(ended));
  }
  return ended.empty() ? Outcome{} : line_.handle(ended);
}

std::optional<base::Clock::Time> Requests::next_pin_end() const {
  std::optional<std::int64_t> next;
  for (const auto& [id, pod] : node_.ledger().pods()) {
    for (const policy::ledger::Pin& pin : pod.overrides) {
      if (pin.until && (!next || *pin.until < *next)) next = pin.until;
    }
  }
  if (!next) return std::nullopt;
  return base::Clock::Time(std::chrono::seconds(*next));
}

Result<Outcome> Requests::reconcile(std::string_view sandbox) {
  if (node_.find_treated_pod(sandbox) != nullptr) return line_.reconcile_pod(std::string(sandbox));
  return find(sandbox).transform([this](Sandbox* found) { return line_.reconcile(*found); });
}

Result<Outcome> Requests::release(std::string_view sandbox) {
  if (node_.find_treated_pod(sandbox) != nullptr) return line_.release_pod(std::string(sandbox));
  return find(sandbox).transform([this](Sandbox* found) { return line_.release(*found); });
}

Result<Sandbox*> Requests::find(std::string_view sandbox) const {
  if (Sandbox* found = node_.sandboxes.find(sandbox)) return found;
  const std::string id(sandbox);
  const auto held = node_.unproved.find(id);
  if (held == node_.unproved.end()) {
    return fail(ErrorCode::kNotFound, "no sandbox \"" + id + '"');
  }
  return fail(ErrorCode::kUnavailable, "sandbox \"" + id + "\" is held back: its VMM cannot be " +
                                           "examined: " + held->second.reason);
}

}  // namespace ka::line
