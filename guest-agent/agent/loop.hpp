// SPDX-License-Identifier: Apache-2.0
// The agent's event loop: sleeps until a descriptor is ready, then calls its handler.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::agent {

class Loop {
 public:
  using Ready = std::function<void(std::uint32_t events)>;

  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() = default;

  /// `events` as epoll(7) has them. The descriptor stays the caller's.
  base::Result<void> add(int fd, std::uint32_t events, Ready ready);
  void change(int fd, std::uint32_t events);
  /// Also from within its own call.
  void remove(int fd);

  enum class Wait { kLong, kNot };
  /// Sleeps until a descriptor is ready (or not at all), and calls the handlers of those that are.
  /// False: epoll failed.
  bool turn(Wait wait);

 private:
  base::Fd epoll_;
  std::map<int, Ready> waiting_;
};

}  // namespace ka::agent
