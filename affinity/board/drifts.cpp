// SPDX-License-Identifier: Apache-2.0
#include "affinity/board/drifts.hpp"

namespace ka::board {

void Drifts::record(const Notification& notification) {
  if (notification.kind != NotificationKind::kDrift) return;
  if (drifts_.size() == kMost) drifts_.pop_front();
  drifts_.push_back(notification);
}

}  // namespace ka::board
