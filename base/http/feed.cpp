// SPDX-License-Identifier: Apache-2.0
#include "base/http/feed.hpp"

#include <utility>

namespace ka::http {

Feed::Subscription::Subscription(Feed& feed, Listener listener)
    : feed_(feed), id_(feed.next_id_++) {
  feed_.listeners_.emplace(id_, std::move(listener));
}

Feed::Subscription::~Subscription() { feed_.listeners_.erase(id_); }

void Feed::publish(std::string line) {
  const auto shared = std::make_shared<const std::string>(std::move(line));
  for (auto at = listeners_.begin(); at != listeners_.end();) {
    const Listener listener = (at++)->second;  // a copy: it may be erased while it runs
    listener(shared);
  }
}

}  // namespace ka::http
