// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and its like, as something to wait for: a self-test removes its pods before it ends.
#pragma once

#include <chrono>
#include <csignal>

#include "base/fd.hpp"

namespace ka::cli::selftest {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE in this thread while it lives. Those that arrived
/// meanwhile are dropped at its end.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  /// Waits that long. False: SIGINT, SIGTERM or SIGHUP arrived; each is reported once.
  bool pause(std::chrono::milliseconds duration) const;
  /// Can be read from while one of them has arrived that pause() has not reported. -1: there is
  /// none.
  int descriptor() const { return arrived_.get(); }

 private:
  sigset_t awaited_{};
  sigset_t before_{};
  base::Fd arrived_;
};

}  // namespace ka::cli::selftest
