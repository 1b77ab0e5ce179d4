// SPDX-License-Identifier: Apache-2.0
// The daemon as a systemd service (sd_notify(3)): reports readiness, and proves to the watchdog
// that its loop turns. Outside of systemd it does nothing.
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>

#include "affinity/daemon/ticker.hpp"
#include "base/clock.hpp"

namespace ka::daemon {

class Service {
 public:
  /// Both must outlive it.
  Service(boost::asio::io_context& io, const base::Clock& clock);

  void ready() const;
  /// To be followed by ready().
  void reloading() const;
  void stopping() const;

 private:
  const base::Clock& clock_;
  std::optional<Ticker> watchdog_;
};

}  // namespace ka::daemon
