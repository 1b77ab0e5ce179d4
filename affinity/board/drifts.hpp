// SPDX-License-Identifier: Apache-2.0
// The last drifts: an operator asks for them after the fact, when the feed has gone by.
#pragma once

#include <cstddef>
#include <deque>

#include "affinity/board/notification.hpp"

namespace ka::board {

class Drifts {
 public:
  static constexpr std::size_t kMost = 256;

  /// Keeps a notification of kind kDrift, and drops the oldest beyond kMost; ignores other kinds.
  void record(const Notification& notification);
  /// The oldest first.
  const std::deque<Notification>& all() const { return drifts_; }

 private:
  std::deque<Notification> drifts_;
};

}  // namespace ka::board
