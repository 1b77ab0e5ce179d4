// SPDX-License-Identifier: Apache-2.0
// The feed of notifications: any part publishes, any number of subscribers listen.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "affinity/board/notification.hpp"

namespace ka::board {

/// Listens for as long as it lives; may outlive its feed.
using Subscription = std::shared_ptr<const void>;

/// Synchronous and single-threaded: publish() returns when every listener has returned. Listeners
/// are called in the order in which they subscribed, from within whatever published: they may read,
/// and must not subscribe or run the line.
class Feed {
 public:
  using Listener = std::function<void(const Notification&)>;

  /// To everything that is not internal.
  [[nodiscard]] Subscription subscribe(Listener listener);
  /// To one kind, internal or not.
  [[nodiscard]] Subscription subscribe(NotificationKind kind, Listener listener);

  /// Numbers the notification unless it is internal, and hands it to its listeners.
  void publish(Notification notification);

 private:
  struct Entry {
    std::optional<NotificationKind> kind;  ///< absent: all that are not internal
    Listener listener;

    bool wants(NotificationKind published) const;
  };

  Subscription add(Entry entry);

  std::vector<std::weak_ptr<const Entry>> entries_;
  std::uint64_t sequence_ = 0;
};

}  // namespace ka::board
