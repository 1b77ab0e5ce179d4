// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/events.hpp"

#include <variant>

#include "policy/plan/overrides.hpp"

namespace ka::messages {

namespace {

/// An operator removes a pin without a time.
bool has_expired(const policy::ledger::OverrideSet& pin) {
  return pin.value.cpus.empty() && pin.value.until;
}

}  // namespace

std::string names_of(const std::set<policy::ledger::Source>& sources) {
  std::string names;
  for (const policy::ledger::Source source : sources) {
    names += (names.empty() ? "" : ", ") + std::string(policy::ledger::source_name(source));
  }
  return names;
}

bool is_expiry(const policy::ledger::Event& event) {
  const auto* pin = std::get_if<policy::ledger::OverrideSet>(&event.body);
  return pin != nullptr && has_expired(*pin);
}

std::string event_text(const policy::ledger::Event& event, const policy::ledger::Ledger& ledger) {
  const std::string by = " (" + std::string(policy::ledger::source_name(event.source)) + ')';
  struct Visitor {
    const policy::ledger::Ledger& ledger;

    std::string operator()(const policy::ledger::PodSeen& e) const {
      const auto& known = ledger.find(e.id)->vmm;  // an event need not repeat it
      return known ? "VMM is process " + std::to_string(known->pid) : "no VM";
    }
    std::string operator()(const policy::ledger::PodGone&) const { return "removed"; }
    std::string operator()(const policy::ledger::ContainerSeen& e) const {
      const auto& known = ledger.find(e.sandbox)->containers.at(e.id).facts;
      return "container " + e.id + ": cpus \"" + policy::format_list(known.cpus) + '"';
    }
    std::string operator()(const policy::ledger::ContainerExited& e) const {
      return "container " + e.container + " exited";
    }
    std::string operator()(const policy::ledger::ContainerGone& e) const {
      return "container " + e.container + " removed";
    }
    std::string operator()(const policy::ledger::KubeletSeen& e) const {
      if (!e.claims) return "reports no owners of CPUs";
      policy::CpuSet owned;
      for (const policy::ledger::Claim& claim : *e.claims) owned |= claim.cpus;
      return "exclusive: \"" + policy::format_list(owned) + "\", shared pool: \"" +
             policy::format_list(e.shared_pool.value_or(policy::CpuSet{})) + '"';
    }
    std::string operator()(const policy::ledger::ResourcesSeen& e) const {
      if (e.allocatable.empty()) return "reports no owners of CPUs";
      policy::CpuSet owned;
      for (const policy::ledger::Assignment& one : e.assignments) owned |= one.cpus;
      return "exclusive: \"" + policy::format_list(owned) + "\" of \"" +
             policy::format_list(e.allocatable) + '"';
    }
    std::string operator()(const policy::ledger::PreparedSeen& e) const {
      policy::CpuSet prepared;
      for (const policy::ledger::PreparedClaim& claim : e.claims) prepared |= claim.cpus;
      return "prepared for ResourceClaims: \"" + policy::format_list(prepared) + '"';
    }
    std::string operator()(const policy::ledger::OverrideSet& e) const {
      const std::string subject = policy::plan::override_subject(e.value);
      if (has_expired(e)) return subject + " returned to the plan: the time of its pin is up";
      return e.value.cpus.empty()
                 ? subject + " returned to the plan"
                 : subject + " pinned manually: \"" + policy::format_list(e.value.cpus) + '"';
    }
  };
  const std::string text = std::visit(Visitor{ledger}, event.body);
  return is_expiry(event) ? text : text + by;
}

std::string drift_text(int count, const std::string& noun) {
  return count == 1 ? "1 " + noun + " had left its planned CPUs"
                    : std::to_string(count) + ' ' + noun + "s had left their planned CPUs";
}

std::string partition_drift_text(const policy::CpuSet& cpus, int times) {
  return "another program had undone the partition of CPUs " + policy::format_list(cpus) +
         (times == 1 ? "" : ' ' + std::to_string(times) + " times") + ": it was made again";
}

std::string waiting_text(const policy::ledger::StartGate& gate) {
  using Phase = policy::ledger::StartGate::Phase;
  if (gate.may_widen()) return {};
  std::string text = "no thread gets more CPUs yet: ";
  if (gate.phase() == Phase::kWaiting) text += "waiting for " + names_of(gate.silent());
  for (const policy::ledger::LostState& lost : gate.lost()) {
    text += text.ends_with(": ") ? "" : "; ";
    text += "state cannot be read: " + lost.file + " (" + lost.reason + ')';
  }
  if (gate.phase() == Phase::kBlind) {
    text +=
        "; the owners of its CPUs are unknown until it can be read, a source reports them, or "
        "`kata-affinityctl reconcile` overrides this";
  }
  return text;
}

std::string silent_text(const policy::ledger::StartGate& gate, std::chrono::seconds limit) {
  return "no report within " + std::to_string(limit.count()) +
         " s of the start, continuing without: " + names_of(gate.silent());
}

}  // namespace ka::messages
