// SPDX-License-Identifier: Apache-2.0
// An event loop on epoll, without a library: a proxy lives as long as its
// sandbox, and there is one for each.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/fd.hpp"

namespace ka::proxy {

/// How long `time` is for epoll_wait(2): rounded up, so that a turn does not end before the time
/// has come; 0 for what is past, and at most a minute.
int to_milliseconds(base::Clock::Time::duration time);

/// Something that waits for its descriptor.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;

  /// `events` as epoll has them. What was ready stays so until it is dealt with.
  virtual void ready(std::uint32_t events) = 0;
};

class Loop {
 public:
  using Time = base::Clock::Time;

  /// `clock` must outlive it.
  explicit Loop(const base::Clock& clock);

  Time now() const { return clock_.now(); }

  /// `watch` must live until the descriptor is removed, and to the end of that turn.
  void add(int fd, std::uint32_t events, Watch& watch);
  void change(int fd, std::uint32_t events, Watch& watch);
  void remove(int fd);

  /// Waits until something is ready or the time has come, and lets each Watch know. Returns how
  /// many there were.
  int turn(Time until);

 private:
  const base::Clock& clock_;
  base::Fd epoll_;
};

}  // namespace ka::proxy
