// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/loop.hpp"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <utility>

namespace ka::agent {

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

base::Result<void> Loop::add(int fd, std::uint32_t events, Ready ready) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return base::fail_errno(errno, "epoll");
  }
  waiting_[fd] = std::move(ready);
  return {};
}

void Loop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::remove(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  waiting_.erase(fd);
}

bool Loop::turn(Wait wait) {
  std::array<epoll_event, 16> events{};
  const int number = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                  wait == Wait::kLong ? -1 : 0);
  if (number < 0) return errno == EINTR;
  for (int i = 0; i < number; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    const auto found = waiting_.find(event.data.fd);
    if (found == waiting_.end()) continue;
    const Ready ready = found->second;  // it may remove itself
    ready(event.events);
  }
  return true;
}

}  // namespace ka::agent
