// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/signals.hpp"

#include <sys/signalfd.h>

#include <cerrno>
#include <ctime>

namespace ka::cli::selftest {

Signals::Signals() {
  ::sigemptyset(&awaited_);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&awaited_, one);
  sigset_t blocked = awaited_;
  ::sigaddset(&blocked, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  arrived_.reset(::signalfd(-1, &awaited_, SFD_CLOEXEC));
}

Signals::~Signals() {
  pause(std::chrono::milliseconds(0));
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Signals::pause(std::chrono::milliseconds duration) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const std::chrono::nanoseconds rest = duration - seconds;
  const timespec time{seconds.count(), rest.count()};
  if (::sigtimedwait(&awaited_, nullptr, &time) < 0) return true;
  // Others that came with it would interrupt what is done because of it.
  const timespec now{};
  while (::sigtimedwait(&awaited_, nullptr, &now) >= 0) {
  }
  return false;
}

}  // namespace ka::cli::selftest
