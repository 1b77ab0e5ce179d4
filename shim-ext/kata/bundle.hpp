// SPDX-License-Identifier: Apache-2.0
// A containerd task's directory (bundle), and its pod.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace ka::kata {

struct Bundle {
  std::filesystem::path directory;
  std::string id;             ///< of the sandbox, or of a container
  bool is_container = false;  ///< a container of a sandbox, which has a bundle of its own
  std::string pod_uid;        ///< empty where containerd's CRI did not make it
  std::string pod_name;       ///< "namespace/name"
};

/// Reads config.json (OCI) for the annotations of containerd's CRI (pkg/cri/annotations). An error
/// where it is not there yet, or not all of it: nothing is changed.
base::Result<void> read_bundle(Bundle& bundle);

}  // namespace ka::kata
