// SPDX-License-Identifier: Apache-2.0
// Reports writes to cpuset cgroups, so that masks are checked immediately and not only by the next
// drift check.
//
// inotify reports writes that processes make to cgroup files (seen on kernel 6.18). It does not
// report what the kernel does itself: a change of an ancestor's cpuset, a CPU that goes offline.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::host {

class CpusetWatch {
 public:
  static base::Result<CpusetWatch> open();

  /// Readable when there is something to drain; non-blocking.
  int fd() const { return inotify_.get(); }

  /// Watches these cgroup directories, and no others from now on; to be called whenever a sandbox
  /// came or went. One that cannot be watched (it is gone, or the user has no watch left) is left
  /// out; the first such failure that is no "gone" is returned after all others have been done.
  ///
  /// One system call a directory, also for those known: cgroupfs reports nothing when a directory
  /// is removed (its inode keeps its link count, so there is no IN_IGNORED), and one made anew
  /// under the same name is another one.
  base::Result<void> watch_only(const std::set<std::string>& directories);

  /// The directories that were written to since the last call: their cpuset, or which tasks are in
  /// them, since the kernel sets a task's mask anew when it is moved (cpuset_attach()). All of them
  /// when the kernel's queue had overflowed.
  base::Result<std::set<std::string>> drain();

 private:
  explicit CpusetWatch(base::Fd inotify) : inotify_(std::move(inotify)) {}

  base::Result<void> add(const std::string& directory);
  void drop(const std::string& directory, int watch);
  void record(int watch, unsigned mask, const char* name, std::set<std::string>& written);

  base::Fd inotify_;
  std::map<std::string, int> watches_;      ///< by directory
  std::map<int, std::string> directories_;  ///< by watch
};

}  // namespace ka::host
