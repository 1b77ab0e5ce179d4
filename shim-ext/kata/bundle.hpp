// SPDX-License-Identifier: Apache-2.0
// A containerd task's directory (bundle), and its pod.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace ka::kata {

/// Of config.json: a pod with a thousand mounts; containerd's own are a few tens of kilobytes.
inline constexpr std::size_t kLargestSpec = std::size_t{4} << 20;

struct Bundle {
  std::filesystem::path directory;
  std::string id;             ///< of the sandbox, or of a container
  bool is_container = false;  ///< a container of a sandbox, which has a bundle of its own
  std::string pod_uid;        ///< empty where containerd's CRI did not make it
  std::string pod_name;       ///< "namespace/name"
};

/// Reads config.json (OCI) for the annotations of containerd's CRI (pkg/cri/annotations). An error
/// where it is not there yet, or not all of it, or is no regular file: nothing is changed.
base::Result<void> read_bundle(Bundle& bundle);

}  // namespace ka::kata
