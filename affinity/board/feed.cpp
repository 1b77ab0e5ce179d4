// SPDX-License-Identifier: Apache-2.0
#include "affinity/board/feed.hpp"

#include <utility>

namespace ka::board {

bool Feed::Entry::wants(NotificationKind published) const {
  return kind ? *kind == published : severity_of(published) != Severity::kInternal;
}

Subscription Feed::subscribe(Listener listener) { return add({std::nullopt, std::move(listener)}); }

Subscription Feed::subscribe(NotificationKind kind, Listener listener) {
  return add({kind, std::move(listener)});
}

Subscription Feed::add(Entry entry) {
  std::erase_if(entries_, [](const auto& known) { return known.expired(); });
  auto added = std::make_shared<const Entry>(std::move(entry));
  entries_.push_back(added);
  return added;
}

/// A listener may publish in turn.
void Feed::publish(Notification notification) {
  if (severity_of(notification.kind) != Severity::kInternal) notification.sequence = ++sequence_;
  for (const auto& known : entries_) {
    const auto entry = known.lock();
    if (entry && entry->wants(notification.kind)) entry->listener(notification);
  }
}

}  // namespace ka::board
