// SPDX-License-Identifier: Apache-2.0
// Starts of containers that wait, for a bounded time, until their guest has placed them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <list>
#include <string>

#include "base/clock.hpp"
#include "base/rpc/timer.hpp"

namespace ka::guests {

class HeldStarts {
 public:
  /// A start waits no longer than this.
  static constexpr std::chrono::milliseconds kBudget{200};

  /// Both must outlive it.
  HeldStarts(boost::asio::io_context& io, const base::Clock& clock) : io_(io), clock_(clock) {}

  /// Keeps `go_on` until release() lets it go. `late` is called when the budget is spent, and is to
  /// see to that.
  void hold(const std::string& sandbox, const std::string& container, std::function<void()> go_on,
            std::function<void()> late);

  /// Lets those of a sandbox go on whose container does not have to wait (any more).
  void release(const std::string& sandbox,
               const std::function<bool(const std::string& container)>& must_wait);

 private:
  struct Start {
    Start(boost::asio::io_context& io, const base::Clock& clock) : timer(io, clock) {}
    std::string sandbox;
    std::string container;
    std::function<void()> go_on;
    rpc::Timer timer;
  };

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  std::list<Start> starts_;
};

}  // namespace ka::guests
