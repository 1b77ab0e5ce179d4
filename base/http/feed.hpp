// SPDX-License-Identifier: Apache-2.0
// Broadcasts lines to current subscribers. Nothing is kept for later ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace ka::http {

class Feed {
 public:
  using Line = std::shared_ptr<const std::string>;
  using Listener = std::function<void(const Line&)>;

  /// A subscription for as long as it lives. The Feed must outlive it.
  class Subscription {
   public:
    Subscription(Feed& feed, Listener listener);
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    ~Subscription();

   private:
    Feed& feed_;
    std::uint64_t id_;
  };

  /// Sends one line ("\n" at its end) to all. A listener may end its own subscription meanwhile.
  void publish(std::string line);

  bool has_listeners() const { return !listeners_.empty(); }

 private:
  std::map<std::uint64_t, Listener> listeners_;
  std::uint64_t next_id_ = 0;
};

}  // namespace ka::http
