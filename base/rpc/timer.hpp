// SPDX-License-Identifier: Apache-2.0
// One wait at a time that can be called off for good.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace ka::rpc {

/// A timer of Asio calls back without an error, too, what ran out before it was cancelled, set
/// anew or destroyed and has not been called yet: all that came due while the program stood still.
/// This one does not.
class Timer {
 public:
  explicit Timer(boost::asio::io_context& io) : timer_(io) {}

  /// Calls `then` from the loop after `delay`, in place of what it was to call before.
  void in(std::chrono::milliseconds delay, std::function<void()> then);
  void cancel();

 private:
  boost::asio::steady_timer timer_;
  std::shared_ptr<std::uint64_t> turn_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace ka::rpc
