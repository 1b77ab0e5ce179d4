// SPDX-License-Identifier: Apache-2.0
// Calls back after the line has run, once however often it ran since: what is wanted of the helper
// follows from the plans.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <vector>

#include "affinity/board/board.hpp"

namespace ka::helper_client {

/// Whether the helper may have a record of what it changed: one that cannot be seen may be there.
bool has_record(const std::filesystem::path& path);

class LineFollower {
 public:
  /// Must outlive the running of `io`.
  LineFollower(boost::asio::io_context& io, std::function<void()> follow);
  LineFollower(const LineFollower&) = delete;
  LineFollower& operator=(const LineFollower&) = delete;
  ~LineFollower() = default;

  /// Follows from now on. `board` must outlive it.
  void start(board::Board& board);
  /// Calls back from the loop, once.
  void follow_soon();

 private:
  boost::asio::io_context& io_;
  std::function<void()> follow_;
  bool soon_ = false;
  std::vector<board::Subscription> subscriptions_;
};

}  // namespace ka::helper_client
