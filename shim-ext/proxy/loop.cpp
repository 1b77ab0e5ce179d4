// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/loop.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace ka::proxy {
namespace {

epoll_event event_for(std::uint32_t events, Watch& watch) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watch;
  return event;
}

}  // namespace

int to_milliseconds(base::Clock::Time::duration time) {
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(time);
  return static_cast<int>(std::clamp<std::int64_t>(rounded.count(), 0, 60'000));
}

Loop::Loop(const base::Clock& clock) : clock_(clock), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void Loop::add(int fd, std::uint32_t events, Watch& watch) {
  epoll_event event = event_for(events, watch);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Loop::change(int fd, std::uint32_t events, Watch& watch) {
  epoll_event event = event_for(events, watch);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::remove(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

int Loop::turn(Time until) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 to_milliseconds(until - now()));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    static_cast<Watch*>(event.data.ptr)->ready(event.events);
  }
  return std::max(count, 0);
}

}  // namespace ka::proxy
