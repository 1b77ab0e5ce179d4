// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/state_files.hpp"

#include <utility>

#include "policy/plan/guest_numbers.hpp"

namespace ka::registry {

using board::NotificationKind;

namespace {

std::string unsaved_text(const Unsaved& unsaved) {
  return (unsaved.is_removed
              ? "state of a removed sandbox is still on disk, a restart would load it: "
              : "state not on disk, a restart would load an older one: ") +
         unsaved.reason;
}

}  // namespace

std::string describe(const std::string& pod, const Unsaved& unsaved) {
  return unsaved.is_removed
             ? "sandbox " + pod +
                   " is removed, and its state is still on disk, retrying: " + unsaved.reason
             : "the state of sandbox " + pod + " is not on disk, retrying: " + unsaved.reason;
}

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
  record(pod, store_.save(*saved), false);
}

void StateFiles::remove(const std::string& pod) {
  saved_.erase(pod);
  record(pod, store_.remove(pod), true);
}

/// Where the directory may not be used, no file of ours is on disk, also none that a daemon before
/// this one wrote.
void StateFiles::restore_missing() {
  const auto missing = store_.find_missing();
  if (missing) {
    for (const std::string& pod : *missing) write(pod);
    return;
  }
  std::set<std::string> pods = saved_;
  for (std::string& loaded : store_.pods()) pods.insert(std::move(loaded));
  for (const std::string& pod : pods) record(pod, {missing.error().message, false});
}

void StateFiles::retry() {
  restore_missing();
  for (const auto& [pod, unsaved] : std::map(unsaved_)) {
    if (unsaved.is_removed) {
      record(pod, store_.remove(pod), true);
    } else {
      write(pod);
    }
  }
}

void StateFiles::record(const std::string& pod, const base::Result<void>& done, bool is_removed) {
  if (!done) return record(pod, {done.error().message, is_removed});
  if (unsaved_.erase(pod) > 0)
    board_.notify(NotificationKind::kStateSaved, pod, "state on disk is up to date again");
}

void StateFiles::record(const std::string& pod, const Unsaved& unsaved) {
  ++board_.counters().errors["state"];
  if (std::exchange(unsaved_[pod], unsaved) == unsaved) return;
  board_.notify(NotificationKind::kStateUnsaved, pod, unsaved_text(unsaved), unsaved.reason);
}

}  // namespace ka::registry
