// SPDX-License-Identifier: Apache-2.0
// The proxy's settings, read before it starts the real shim.
#pragma once

#include <filesystem>
#include <string>

namespace ka::proxy {

struct Settings {
  std::string real_shim;
  std::string api_socket;
  std::filesystem::path kubelet_state;  ///< empty: not read
  /// What is wrong with the configuration, so that the defaults hold, or with the shared pool;
  /// empty: nothing.
  std::string input_error;
};

/// [affinity] of Kata's configuration. containerd's environment, which a shim inherits, may name
/// another file (KATA_AFFINITY_CONFIG) and another socket of the daemon (KATA_AFFINITY_SOCKET). It
/// never fails: a pod must start whatever is wrong with our configuration.
Settings read_settings();

}  // namespace ka::proxy
