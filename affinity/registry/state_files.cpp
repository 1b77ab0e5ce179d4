// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/state_files.hpp"

#include <utility>

#include "policy/plan/guest_numbers.hpp"

namespace ka::registry {

using board::NotificationKind;

void StateFiles::save(state::Saved saved) {
  const std::string pod = saved.pod.id;
  saved_[pod] = std::move(saved);
  write(pod);
}

void StateFiles::save_guest(const std::string& pod) {
  if (saved_.contains(pod)) write(pod);
}

void StateFiles::write(const std::string& pod) {
  state::Saved& saved = saved_.at(pod);
  const board::GuestView* guest = board_.guest(pod);
  saved.guest =
      guest == nullptr ? state::SavedGuest{} : state::SavedGuest{guest->writes, guest->plugged};
  record(pod, store_.save(saved));
}

void StateFiles::remove(const std::string& pod) {
  saved_.erase(pod);
  record(pod, store_.remove(pod));
}

void StateFiles::retry() {
  for (const auto& [pod, reason] : std::map(unsaved_)) {
    if (saved_.contains(pod)) {
      write(pod);
    } else {
      record(pod, store_.remove(pod));
    }
  }
}

void StateFiles::record(const std::string& pod, const base::Result<void>& done) {
  if (done) {
    if (unsaved_.erase(pod) > 0)
      board_.notify(NotificationKind::kStateSaved, pod, "state written again");
    return;
  }
  ++board_.counters().errors["state"];
  const std::string& reason = done.error().message;
  if (std::exchange(unsaved_[pod], reason) == reason) return;
  board_.notify(NotificationKind::kStateUnsaved, pod,
                "state not on disk, a restart would load an older one: " + reason, reason);
}

}  // namespace ka::registry
