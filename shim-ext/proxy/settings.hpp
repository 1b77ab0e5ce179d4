// SPDX-License-Identifier: Apache-2.0
// The proxy's settings.
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

}  // namespace ka::proxy
