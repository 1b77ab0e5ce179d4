// SPDX-License-Identifier: Apache-2.0
#include "base/wait_limit.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <limits>

namespace ka::base {

WaitLimit WaitLimit::at_most(std::chrono::nanoseconds limit) const {
  const Clock clock;
  return {Deadline::in(clock, std::min(limit, deadline.remaining(clock))), interrupt};
}

std::chrono::milliseconds WaitLimit::remaining() const {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline.remaining(Clock()));
  return std::clamp(left, milliseconds(0), milliseconds(std::numeric_limits<int>::max()));
}

/// Whatever wakes it, what has happened is looked at; a signal for others wakes it, too.
Waited wait_for(int fd, short events, const WaitLimit& wait_limit) {
  for (;;) {
    std::array<pollfd, 2> polled{
        pollfd{.fd = fd, .events = events, .revents = 0},
        pollfd{.fd = wait_limit.interrupt, .events = POLLIN, .revents = 0}};
    const auto left = wait_limit.remaining();
    ::poll(polled.data(), polled.size(), static_cast<int>(left.count()));
    if (polled[1].revents != 0) return Waited::kInterrupted;
    if (polled[0].revents != 0) return Waited::kReady;
    if (left.count() == 0) return Waited::kLate;
  }
}

const char* reason_of(Waited waited) {
  return waited == Waited::kInterrupted ? "interrupted by a signal" : "no response in time";
}

}  // namespace ka::base
