// SPDX-License-Identifier: Apache-2.0
// Where a benchmark's daemon lives: in memory, as state below /run does on a node.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/temp_dir.hpp"

namespace ka::bench {

class DaemonFiles {
 public:
  std::string path(const char* name) const { return (dir_.path() / name).string(); }

  /// Starts `program`, the daemon, with these lines of [affinity] for its sources.
  std::vector<std::string> command(const std::string& program, const std::string& sources,
                                   const std::string& log_level = "warning") const {
    dir_.write("affinity.toml", "[affinity]\nlog_level = \"" + log_level + "\"\n" + sources);
    return {program,       "--config",       path("affinity.toml"),
            "--socket",    path("api.sock"), "--state-dir",
            path("state"), "--run",          dir_.path().string()};
  }

 private:
  static tests::TempDir in_memory() {
    ::setenv("TMPDIR", "/dev/shm", 1);
    return tests::TempDir();
  }

  tests::TempDir dir_ = in_memory();
};

/// No source of this machine.
inline constexpr const char* kNoSources = "nri_socket = \"\"\nkubelet_state = \"\"\n";

}  // namespace ka::bench
