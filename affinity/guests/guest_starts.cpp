// SPDX-License-Identifier: Apache-2.0
// Which starts of containers wait for their guests.
#include <utility>

#include "affinity/guests/guests.hpp"

namespace ka::guests {

void Guests::await(const std::string& sandbox, const std::string& container,
                   std::function<void()> go_on) {
  update(sandbox, clock_.now());
  const auto found = guests_.find(sandbox);
  if (found == guests_.end() || !must_wait(found->second, container)) return go_on();
  starts_.hold(sandbox, container, std::move(go_on), [this, sandbox] { start_is_late(sandbox); });
}

/// A guest that will not place it, or does not report, is not waited for; nor is one like another
/// that did not.
bool Guests::must_wait(const Guest& guest, const std::string& container) const {
  const GuestPeer* peer = guest.peer();
  if (peer == nullptr || !guest.record.view.connected || !peer->will_answer()) return false;
  if (guest.missed_a_start || peer->is_placed(container)) return false;
  const auto kind = kinds_.find(guest.kind());
  return guest.kernel.empty() || kind == kinds_.end() || !kind->second.missed_a_start ||
         kind->second.places;
}

void Guests::start_is_late(const std::string& sandbox) {
  const auto found = guests_.find(sandbox);
  if (found != guests_.end()) {
    Guest& guest = found->second;
    guest.missed_a_start = true;
    kinds_[guest.kind()].missed_a_start = true;
  }
  log_.warning("container started before its guest placed it", {{"sandbox", sandbox}});
  release_starts(sandbox);
}

void Guests::release_starts(const std::string& sandbox) {
  const auto found = guests_.find(sandbox);
  starts_.release(sandbox, [&](const std::string& container) {
    return found != guests_.end() && must_wait(found->second, container);
  });
}

}  // namespace ka::guests
