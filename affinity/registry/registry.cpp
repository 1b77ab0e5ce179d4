// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/registry.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "affinity/messages/claims.hpp"
#include "affinity/messages/contests.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/messages/terms.hpp"
#include "affinity/registry/admission.hpp"
#include "affinity/registry/ended_pins.hpp"

namespace ka::registry {
namespace {

using board::NotificationKind;
using policy::ledger::Change;
using policy::ledger::Event;
using policy::ledger::Ledger;
using policy::ledger::PodRecord;
using policy::ledger::PodSeen;
using policy::ledger::Source;
using Phase = policy::ledger::StartGate::Phase;

/// The other pod whose VM the process is known to be; null: none. `Pod`: a PodSeen or PodRecord.
template <typename Pod>
const PodRecord* holder_of_vmm(const Pod& claimant, const Ledger& ledger) {
  const PodRecord* known = ledger.find(claimant.id);
  if (!claimant.vmm || (known != nullptr && known->vmm == claimant.vmm)) return nullptr;
  return ledger.find_holder(*claimant.vmm, claimant.id);
}

/// The same, where a source has reported it since the start.
const PodRecord* reported_holder(const PodSeen& claimant, const Ledger& ledger) {
  const PodRecord* holder = holder_of_vmm(claimant, ledger);
  return holder == nullptr || holder->vmm_from_state ? nullptr : holder;
}

/// What is in one set alone.
policy::CpuSet difference(const policy::CpuSet& one, const policy::CpuSet& other) {
  return (one | other) - (one & other);
}

std::string title(const std::string& id, const std::string& name) {
  return '"' + id + '"' + (name.empty() ? "" : " (" + name + ')');
}

template <typename Pod>
std::string refused_text(const Pod& claimant, const PodRecord& holder) {
  return "process " + std::to_string(claimant.vmm->pid) + " is the VM of sandbox " +
         title(holder.id, holder.pod_name) + ", not of " + title(claimant.id, claimant.pod_name);
}

/// Of a pod that is known from its state file.
template <typename Pod>
std::string lost_text(const Pod& loser, const PodRecord& holder) {
  return refused_text(loser, holder) +
         "; it is not placed, and keeps its CPUs until `kata-affinityctl sandbox rm " + loser.id +
         '`';
}

}  // namespace

Registry::Registry(state::Store& store, board::Board& board, const log::Log& log,
                   const base::Clock& clock)
    : store_(store),
      board_(board),
      log_(log),
      clock_(clock),
      ownership_times_(clock.now()),
      files_(store, board) {
  describe_with([](const std::string&) { return std::nullopt; });
  subscribe();
}

/// A request to a guest is on disk before anything depends on it.
void Registry::subscribe() {
  const auto on = [this](NotificationKind kind, auto handle) {
    subscriptions_.push_back(board_.feed().subscribe(kind, std::move(handle)));
  };
  const auto update_connected = [this](const board::Notification&) {
    for (const auto& [source, view] : board_.sources()) ledger_.set_connected(source, view.up);
  };
  on(NotificationKind::kSourceUp, update_connected);
  on(NotificationKind::kSourceDown, update_connected);
  on(NotificationKind::kGuestWritten,
     [this](const board::Notification& writes) { files_.save_guest(writes.sandbox); });
}

Change Registry::fold(const Event& event) {
  if (names_successor(event)) return fold_without_vmm(event);
  const auto* seen = std::get_if<PodSeen>(&event.body);
  if (const auto* holder = seen == nullptr ? nullptr : reported_holder(*seen, ledger_)) {
    refuse_vmm(seen->id, refused_text(*seen, *holder), event.source);
    refused_vmms_.keep_claim(event.source, *seen);
    Event without = event;
    std::get<PodSeen>(without.body).vmm.reset();
    return fold(without);
  }
  ++board_.counters().events[std::string(source_name(event.source))];
  if (!is_admitted(event)) return {};
  if (const auto* gone = std::get_if<policy::ledger::PodGone>(&event.body)) forget_ended(gone->id);
  refused_vmms_.update(event);
  Change change = apply(event);
  update_gate(event);
  if (!change.any) return change;
  if (!change.former_pod.empty()) hand_over_vm(change.former_pod, event);
  const bool is_whole = std::holds_alternative<policy::ledger::KubeletSeen>(event.body) ||
                        std::holds_alternative<policy::ledger::PreparedSeen>(event.body);
  if (is_whole) current_resources_ = false;
  add_or_remove_sandbox(change.sandbox);
  board_.notify(event, change.sandbox, messages::event_text(event, ledger_));
  notify_of_contests(change);
  notify_of_refused(change.sandbox);
  return change;
}

Change Registry::apply(const Event& event) {
  reports_.record(event, clock_.wall());
  const policy::CpuSet owned = ledger_.exclusive();
  const policy::CpuSet contested = ledger_.contested();
  Change change = ledger_.apply(event);
  if (!change.owners) return change;
  ownership_times_.record_taken(change.taken, clock_.now());
  ownership_times_.record_changed(change.taken | difference(owned, ledger_.exclusive()) |
                                      difference(contested, ledger_.contested()),
                                  clock_.now());
  return change;
}

/// Notifies of contests that began or ended, and of each contender that joins one.
void Registry::notify_of_contests(const Change& change) {
  const PodRecord* pod = ledger_.find(change.sandbox);
  const bool within = pod != nullptr && !policy::ledger::contested_within(*pod).empty();
  if (!change.owners && !within && contests_.empty()) return;
  const auto before = std::exchange(contests_, policy::ledger::contests_of(ledger_));
  if (const auto ended = cpus_of(before) - cpus_of(contests_); !ended.empty()) {
    board_.notify(NotificationKind::kCpusUncontested, {},
                  messages::cpus_text(ended) + " no longer assigned more than once");
  }
  for (const policy::ledger::Contest& contest : contests_) {
    if (!has_new_contender(contest, before)) continue;
    board_.notify(NotificationKind::kCpusContested, {}, messages::sentence(contest));
  }
}

/// Notifies of each container that begins to name a claim which is not its own. An event of one pod
/// concerns its containers alone; "" is the node as a whole.
void Registry::notify_of_refused(const std::string& pod) {
  auto now = pod.empty() ? policy::ledger::refused_claims(ledger_)
                         : policy::ledger::refused_claims(ledger_, pod);
  for (const policy::ledger::RefusedClaims& refused : now) {
    if (std::ranges::binary_search(refused_, refused)) continue;
    board_.notify(NotificationKind::kClaimRefused, refused.sandbox,
                  messages::sentence(ledger_, refused));
  }
  std::erase_if(refused_, [&](const auto& one) { return pod.empty() || one.sandbox == pod; });
  refused_.insert(refused_.end(), now.begin(), now.end());
  std::ranges::sort(refused_);
}

bool Registry::is_admitted(const Event& event) const {
  const auto good = admit(event, ledger_);
  if (!good) {
    log_.warning("event rejected", {{"source", std::string(source_name(event.source))},
                                    {"reason", good.error().message}});
  }
  return good.has_value();
}

void Registry::refuse_vmm(const std::string& pod, const std::string& text, Source source) {
  if (!set_refused(pod, text, source)) return;
  log_.warning("two pods claim one VM", {{"sandbox", pod}, {"reason", text}});
}

/// What is in the guest goes with the VM. That the former pod's CPUs are free nobody has said.
void Registry::hand_over_vm(const std::string& former, const Event& event) {
  const PodRecord& pod = *ledger_.find(std::get<PodSeen>(event.body).id);
  PodSeen loser{.id = former, .pod_name = ledger_.find(former)->pod_name, .vmm = pod.vmm};
  board_.hand_over_guest(former, pod.id);
  board_.remove_sandbox(former);
  refuse_vmm(former, lost_text(loser, pod), event.source);
}

/// False: that is what was refused before.
bool Registry::set_refused(const std::string& pod, const std::string& text, Source source) {
  if (!refused_vmms_.refuse(pod, text)) return false;
  board_.notify(NotificationKind::kVmmRefused, pod, text, std::string(source_name(source)));
  return true;
}

std::vector<Event> Registry::remove_due_claims() {
  return refused_vmms_.remove_due(
      [this](const PodSeen& seen) { return holder_of_vmm(seen, ledger_) != nullptr; });
}

Change Registry::end(const std::string& sandbox) {
  if (const PodRecord* pod = ledger_.find(sandbox); pod != nullptr && pod->vmm) {
    refused_vmms_.vmm_ended(*pod->vmm);
    record_ended(*pod);
  }
  const Event gone{Source::kState, policy::ledger::PodGone{sandbox}};
  refused_vmms_.update(gone);
  Change change = apply(gone);
  add_or_remove_sandbox(sandbox);
  board_.notify(NotificationKind::kSandboxEnded, sandbox, "VMM exited");
  notify_of_contests(change);
  notify_of_refused(sandbox);
  return change;
}

/// Makes or drops what is kept beside the ledger's record of a pod. "" is the node as a whole.
void Registry::add_or_remove_sandbox(const std::string& pod) {
  const PodRecord* record = ledger_.find(pod);
  if (record != nullptr) {
    if (record->vmm) board_.add_sandbox(pod);
  } else if (!pod.empty()) {
    board_.remove_sandbox(pod);
    update_file_of_gone(pod);
  }
}

// --- the start

void Registry::update_gate(const Event& event) {
  if (gate_.may_widen()) return;
  if (const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body)) {
    step_gate([&] { gate_.pod_reported(seen->sandbox); });
  }
  const auto* kubelet = std::get_if<policy::ledger::KubeletSeen>(&event.body);
  const bool is_current = (kubelet != nullptr && !kubelet->outdated) ||
                          std::holds_alternative<policy::ledger::ResourcesSeen>(event.body) ||
                          std::holds_alternative<policy::ledger::PreparedSeen>(event.body);
  if (is_current) source_synced(event.source);
}

void Registry::source_synced(Source source) {
  if (source == Source::kPodResources) current_resources_ = true;
  step_gate([&] { gate_.synced(source); });
}

bool Registry::stop_waiting() {
  const bool waited = gate_.phase() == Phase::kWaiting;
  step_gate([this] { gate_.expire(); });
  if (waited)
    board_.notify(NotificationKind::kStartLate, {}, messages::silent_text(gate_, kStartLimit));
  return waited;
}

void Registry::dismiss_lost_state() {
  store_.give_up_unread();
  step_gate([this] { gate_.dismiss_lost(); });
  opened_ = false;
}

/// Notifies of a step that changes the phase.
void Registry::step_gate(const std::function<void()>& step) {
  const Phase before = gate_.phase();
  step();
  if (gate_.phase() == before) return;
  if (!gate_.may_widen()) {
    board_.notify(NotificationKind::kStartWaiting, {}, messages::waiting_text(gate_));
    return;
  }
  opened_ = true;
  store_.dismiss_damaged();
  board_.notify(NotificationKind::kStartComplete, {}, "start complete: threads may be widened");
}

bool Registry::consume_opened() { return std::exchange(opened_, false); }

// --- the state of an earlier daemon

void Registry::load(const std::function<void(const state::Saved&)>& adopt) {
  const state::Loaded loaded = store_.load();
  for (const state::Saved& saved : loaded.pods) adopt(saved);
  step_gate([&] { gate_.set_lost(loaded.lost); });
}

void Registry::retry(const std::function<void(const state::Saved&)>& adopt) {
  if (store_.has_lost()) load(adopt);
  files_.retry();
}

bool Registry::restore(const state::Saved& saved) {
  const bool is_its_vm = restore_pod(saved);
  // Those that ended while no daemon ran are not put back.
  for (const Event& ended : ended_pins(*ledger_.find(saved.pod.id), clock_.now())) fold(ended);
  return is_its_vm;
}

bool Registry::restore_pod(const state::Saved& saved) {
  const std::string& id = saved.pod.id;
  const PodRecord* reported = ledger_.find(id);
  if (reported != nullptr && reported->vmm && reported->vmm != saved.pod.vmm) {
    for (const policy::ledger::Pin& by_hand : saved.pod.overrides) {
      ledger_.apply({Source::kState, policy::ledger::OverrideSet{
                                         .sandbox = id, .value = by_hand, .lasts_for = {}}});
    }
    return false;
  }
  if (const PodRecord* holder = holder_of_vmm(saved.pod, ledger_)) {
    refuse_vmm(id, lost_text(saved.pod, *holder), Source::kState);
    restore_without_vmm(saved.pod);
    return false;
  }
  ledger_.restore(saved.pod);
  if (!saved.pod.vmm) return true;
  board_.add_sandbox(id);
  if (!(saved.guest == state::SavedGuest())) {
    board_.restore_guest(id, {.address = saved.guest.writes.address,
                              .text = "not connected since the start",
                              .writes = saved.guest.writes,
                              .plugged = saved.guest.plugged});
  }
  return true;
}

/// Nobody has said that its containers ended.
void Registry::restore_without_vmm(const PodRecord& pod) {
  PodRecord without = pod;
  without.remove_vm();
  ledger_.restore(std::move(without));
}

}  // namespace ka::registry
