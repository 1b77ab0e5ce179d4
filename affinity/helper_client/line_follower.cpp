// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper_client/line_follower.hpp"

#include <boost/asio/post.hpp>
#include <system_error>
#include <utility>

namespace ka::helper_client {

using board::NotificationKind;

bool has_record(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;
}

LineFollower::LineFollower(boost::asio::io_context& io, std::function<void()> follow)
    : io_(io), follow_(std::move(follow)) {}

/// A sandbox may end without a run: kubelet still lists its CPUs.
void LineFollower::start(board::Board& board) {
  for (const auto kind : {NotificationKind::kLineRun, NotificationKind::kSandboxEnded}) {
    subscriptions_.push_back(board.feed().subscribe(kind, [this](const auto&) { follow_soon(); }));
  }
}

void LineFollower::follow_soon() {
  if (std::exchange(soon_, true)) return;
  boost::asio::post(io_, [this] {
    soon_ = false;
    follow_();
  });
}

}  // namespace ka::helper_client
