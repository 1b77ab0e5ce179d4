// SPDX-License-Identifier: Apache-2.0
// What a process sees mounted (proc_pid_mountinfo(5)).
#pragma once

#include <string_view>
#include <vector>

namespace ka::base {

/// One line of mountinfo; parts of its text, escapes ("\040") as the kernel writes them.
struct Mount {
  std::string_view device;  ///< "major:minor" of the filesystem
  std::string_view root;    ///< the directory of the filesystem that is mounted
  std::string_view point;   ///< where
  std::string_view type;
  std::string_view options;  ///< of the filesystem
};

/// Those of the whole text, in its order; lines that are none are left out.
std::vector<Mount> parse_mounts(std::string_view mountinfo);

}  // namespace ka::base
