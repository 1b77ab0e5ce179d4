// SPDX-License-Identifier: Apache-2.0
// inotify on relevant cgroups: a container's appears or goes, or a process writes its cpuset.
#pragma once

#include <sys/inotify.h>

#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::agent {

/// Events of watched cgroups.
struct CgroupNews {
  bool changed = false;  ///< cgroups or processes came or went, or what was written is not known
  std::vector<std::filesystem::path> cpusets;  ///< cpusets written, perhaps by the agent
};

class TreeWatch {
 public:
  /// inotify_init1(2). Whatever was watched before is not watched any more.
  base::Result<void> open();

  /// Watches these directories and no others. True if one of them was not watched before: no event
  /// has reported what was created there until now.
  bool watch_only(const std::vector<std::filesystem::path>& directories);
  /// All of them are watched, but for those that are not there: what happens in the others is not
  /// heard of.
  bool is_complete() const { return is_complete_; }
  /// Watches nothing until it is opened again.
  void close();
  int fd() const { return inotify_.get(); }
  /// Reads all that is there. The error: what happened is not known, and will not be.
  base::Result<CgroupNews> drain();

 private:
  void handle(const inotify_event& event, std::string_view name, CgroupNews& news) const;

  base::Fd inotify_;
  bool is_complete_ = true;
  std::map<std::filesystem::path, int> watches_;
};

}  // namespace ka::agent
