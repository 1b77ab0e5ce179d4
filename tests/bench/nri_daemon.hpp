// SPDX-License-Identifier: Apache-2.0
// A container runtime and a daemon that becomes its plugin, for benchmarks.
#pragma once

#include <cstdlib>
#include <string>

#include "tests/bench/child.hpp"
#include "tests/nri_runtime.hpp"
#include "tests/temp_dir.hpp"

namespace ka::bench {

class NriDaemon {
 public:
  /// `program`: the daemon. It has connected once runtime().take_in() returns.
  explicit NriDaemon(const std::string& program)
      : runtime_((dir_.path() / "nri.sock").string()),
        daemon_({program, "--config", configuration(), "--socket", path("api.sock"), "--state-dir",
                 path("state"), "--run", dir_.path().string()}) {}

  tests::NriRuntime& runtime() { return runtime_; }

 private:
  /// State lies below /run on a node, which is in memory.
  static tests::TempDir in_memory() {
    ::setenv("TMPDIR", "/dev/shm", 1);
    return tests::TempDir();
  }
  std::string path(const char* name) const { return (dir_.path() / name).string(); }
  std::string configuration() const {
    dir_.write("affinity.toml", "[affinity]\nlog_level = \"warning\"\nkubelet_state = \"" +
                                    path("kubelet") + "\"\nnri_socket = \"" + path("nri.sock") +
                                    "\"\n");
    return path("affinity.toml");
  }

  tests::TempDir dir_ = in_memory();
  tests::NriRuntime runtime_;
  Child daemon_;
};

}  // namespace ka::bench
