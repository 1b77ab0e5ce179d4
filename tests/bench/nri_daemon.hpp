// SPDX-License-Identifier: Apache-2.0
// A container runtime and a daemon that becomes its plugin, for benchmarks.
#pragma once

#include <string>

#include "tests/bench/child.hpp"
#include "tests/bench/daemon_files.hpp"
#include "tests/nri_runtime.hpp"

namespace ka::bench {

class NriDaemon {
 public:
  /// `program`: the daemon; `settings`: more lines of [affinity]. It has connected once
  /// runtime().accept() returns.
  explicit NriDaemon(const std::string& program, const std::string& settings = {})
      : runtime_(files_.path("nri.sock")),
        daemon_(files_.command(program, "kubelet_state = \"" + files_.path("kubelet") +
                                            "\"\nnri_socket = \"" + files_.path("nri.sock") +
                                            "\"\n" + settings)) {}

  tests::NriRuntime& runtime() { return runtime_; }

 private:
  DaemonFiles files_;
  tests::NriRuntime runtime_;
  Child daemon_;
};

}  // namespace ka::bench
