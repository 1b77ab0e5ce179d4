// SPDX-License-Identifier: Apache-2.0
#include "affinity/guests/guest_peer.hpp"

#include <algorithm>

namespace ka::guests {

const policy::GuestContainerState* find_state(const GuestRecord& record,
                                              const std::string& container) {
  if (!record.view.report) return nullptr;
  const auto& states = record.view.report->containers;
  const auto state = std::ranges::find(states, container, &policy::GuestContainerState::id);
  return state == states.end() ? nullptr : &*state;
}

}  // namespace ka::guests
