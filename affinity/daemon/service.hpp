// SPDX-License-Identifier: Apache-2.0
// The daemon as a systemd service (sd_notify(3)): says when it is ready, and proves to the watchdog
// that its loop turns. Outside of systemd it does nothing.
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>

#include "affinity/daemon/ticker.hpp"

namespace ka::daemon {

class Service {
 public:
  explicit Service(boost::asio::io_context& io);

  void ready() const;
  /// To be followed by ready().
  void reloading() const;
  void stopping() const;

 private:
  std::optional<Ticker> watchdog_;
};

}  // namespace ka::daemon
