// SPDX-License-Identifier: Apache-2.0
#include "tests/failing_inotify.hpp"

#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {

int fail(int number) {
  errno = number;
  return -1;
}

}  // namespace

// A program's functions come before those of the C library.
extern "C" int inotify_init1(int flags) noexcept {
  const int number = ka::tests::failing_inotify.instance;
  return number != 0 ? fail(number) : static_cast<int>(::syscall(SYS_inotify_init1, flags));
}

extern "C" int inotify_add_watch(int inotify, const char* name, std::uint32_t mask) noexcept {
  const int number = ka::tests::failing_inotify.watch;
  return number != 0 ? fail(number)
                     : static_cast<int>(::syscall(SYS_inotify_add_watch, inotify, name, mask));
}
