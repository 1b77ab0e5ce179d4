// SPDX-License-Identifier: Apache-2.0
// What the registry keeps of VMMs that have ended, for itself and for the next daemon.
#include <utility>
#include <variant>

#include "affinity/registry/registry.hpp"

namespace ka::registry {
namespace {

std::string successor_text(const policy::ledger::PodSeen& seen) {
  return "process " + std::to_string(seen.vmm->pid) + " is not the VM of sandbox \"" + seen.id +
         "\": the VMM that had its number has ended";
}

}  // namespace

using board::NotificationKind;
using policy::ledger::Change;
using policy::ledger::Event;
using policy::ledger::PodRecord;
using policy::ledger::PodSeen;

/// The number of a VMM that has ended, which another process has now.
bool Registry::names_successor(const Event& event) const {
  const auto* seen = std::get_if<PodSeen>(&event.body);
  return seen != nullptr && seen->vmm && policy::ledger::traits_of(event.source).repeats_numbers &&
         ledger_.ended().is_successor(seen->id, *seen->vmm);
}

Change Registry::fold_without_vmm(Event event) {
  auto& seen = std::get<PodSeen>(event.body);
  const std::string text = successor_text(seen);
  if (set_refused(seen.id, text, event.source)) {
    log_.warning("a VMM that has ended is reported again",
                 {{"sandbox", seen.id}, {"reason", text}});
  }
  seen.vmm.reset();
  return fold(event);
}

/// For the next daemon, too.
void Registry::record_ended(const PodRecord& pod) {
  if (!pod.vmm || !policy::ledger::traits_of(pod.source).repeats_numbers) return;
  const std::string forgotten = ledger_.ended().record(pod.id, *pod.vmm, pod.source);
  if (!forgotten.empty() && ledger_.find(forgotten) == nullptr) files_.remove(forgotten);
}

void Registry::forget_ended(const std::string& pod) {
  if (ledger_.ended().forget(pod) && ledger_.find(pod) == nullptr) files_.remove(pod);
}

/// It is kept while sources may name its VMM.
void Registry::update_file_of_gone(const std::string& pod) {
  if (ledger_.ended().find(pod) != nullptr) {
    files_.save(pod);
  } else {
    files_.remove(pod);
  }
}

void Registry::describe_with(StateFiles::Describe describe) {
  files_.describe_with([this, describe = std::move(describe)](const std::string& pod) {
    return with_ended(pod, describe(pod));
  });
}

std::optional<state::Saved> Registry::with_ended(const std::string& pod,
                                                 std::optional<state::Saved> saved) const {
  const policy::ledger::EndedVmm* ended = ledger_.ended().find(pod);
  if (ended == nullptr) return saved;
  if (!saved) {
    saved.emplace();
    saved->pod.id = pod;
    saved->pod.source = ended->source;
  }
  saved->ended = ended->id;
  return saved;
}

void Registry::drop(const PodRecord& pod) {
  record_ended(pod);
  update_file_of_gone(pod.id);
}

bool Registry::restore_ended(const state::Saved& saved) {
  if (!saved.ended) return false;
  ledger_.ended().record(saved.pod.id, *saved.ended, saved.pod.source);
  return !saved.pod.vmm && saved.pod.containers.empty();
}

}  // namespace ka::registry
