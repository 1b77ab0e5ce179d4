// SPDX-License-Identifier: Apache-2.0
// A kernel that has no inotify left, or no watch. What the C library would do is in
// failing_inotify.cpp, which is part of the test's program.
#pragma once

namespace ka::tests {

/// errno of inotify_init1() and of inotify_add_watch() from now on; 0: they work.
struct FailingInotify {
  int instance = 0;
  int watch = 0;
};
inline FailingInotify failing_inotify;

/// All works again when the test is over, however it ends.
struct InotifyFails {
  explicit InotifyFails(FailingInotify how) { failing_inotify = how; }
  InotifyFails(const InotifyFails&) = delete;
  InotifyFails& operator=(const InotifyFails&) = delete;
  ~InotifyFails() { failing_inotify = {}; }

  void end() { failing_inotify = {}; }
};

}  // namespace ka::tests
