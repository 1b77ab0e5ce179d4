// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/pod_watch.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace ka::cluster {
namespace {

using base::ErrorCode;
using base::Result;
using namespace std::chrono_literals;

/// Between two watches that end without an error: the server may end them at once.
constexpr auto kBetween = 1s;
constexpr auto kLongest = 60s;
/// Of what the server asks for.
constexpr auto kLongestWanted = 5min;

}  // namespace

void PodWatch::run(const std::function<void(std::chrono::milliseconds)>& sleep) {
  base::Backoff backoff(kBetween, kLongest);
  for (;;) {
    const auto ended = list_and_watch();
    if (ended) {
      backoff.reset();
    } else {
      log_.warning("pods of this node: " + ended.error().message, {{"kind", "watch"}});
    }
    const std::chrono::milliseconds wanted =
        std::min<ApiServer::Pause>(std::exchange(pause_, 0s), kLongestWanted);
    sleep(ended ? kBetween : std::max(backoff.next(), wanted));
  }
}

Pods PodWatch::pods() const {
  const std::lock_guard lock(mutex_);
  return pods_;
}

Result<void> PodWatch::list_and_watch() {
  if (is_outdated_) {
    if (auto listed = list(); !listed) return listed;
    is_outdated_ = false;
  }
  return watch();
}

Result<void> PodWatch::list() {
  const auto text = server_.list(pause_);
  if (!text) return unexpected(text.error());
  const std::lock_guard lock(mutex_);
  return pods_.replace(*text);
}

Result<void> PodWatch::watch() {
  Result<void> applied;
  const auto ended =
      server_.watch(pods().version(), pause_, [this, &applied](std::string_view line) {
        applied = apply(line);
        return applied.has_value();
      });
  Result<void> result = ended ? applied : ended;
  // What cannot be read may have been a change: only a list tells.
  if (!result && result.error().code != ErrorCode::kUnavailable) is_outdated_ = true;
  return result;
}

Result<void> PodWatch::apply(std::string_view line) {
  const std::lock_guard lock(mutex_);
  return pods_.apply(line);
}

}  // namespace ka::cluster
