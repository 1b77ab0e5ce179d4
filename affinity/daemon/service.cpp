// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/service.hpp"

#include <systemd/sd-daemon.h>

#include <chrono>
#include <cstdint>

namespace ka::daemon {

Service::Service(boost::asio::io_context& io, const base::Clock& clock) : clock_(clock) {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return;
  watchdog_.emplace(io, clock, std::chrono::microseconds(microseconds / 4),
                    [] { sd_notify(0, "WATCHDOG=1"); });
}

void Service::ready() const { sd_notify(0, "READY=1"); }

void Service::reloading() const {
  const auto now = clock_.now().time_since_epoch();
  // Type=notify-reload wants the time of the message beside it.
  sd_notifyf(
      0, "RELOADING=1\nMONOTONIC_USEC=%lld",
      static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
}

void Service::stopping() const { sd_notify(0, "STOPPING=1"); }

}  // namespace ka::daemon
