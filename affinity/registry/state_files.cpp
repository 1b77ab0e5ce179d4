// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/state_files.hpp"

#include <utility>

#include "policy/plan/guest_numbers.hpp"

namespace ka::registry {

using board::NotificationKind;

void StateFiles::save(const std::string& pod) {
  saved_.insert(pod);
  write(pod);
}

void StateFiles::save_guest(const std::string& pod) {
  if (saved_.contains(pod)) write(pod);
}

void StateFiles::write(const std::string& pod) {
  std::optional<state::Saved> saved = describe_(pod);
  if (!saved) return;
  if (const board::GuestView* guest = board_.guest(pod)) {
    saved->guest = {guest->writes, guest->plugged};
  }
  record(pod, store_.save(*saved));
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
