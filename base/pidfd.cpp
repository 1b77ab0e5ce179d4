// SPDX-License-Identifier: Apache-2.0
#include "base/pidfd.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ka::base {

/// glibc 2.36 declares pidfd_open without extern "C".
Fd open_pidfd(int pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool has_ended(int pidfd) {
  pollfd polled{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
}

}  // namespace ka::base
