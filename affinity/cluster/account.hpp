// SPDX-License-Identifier: Apache-2.0
// A pod's service account, as kubelet mounts it.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace ka::cluster {

class Account {
 public:
  explicit Account(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Read anew each time: kubelet replaces it before it expires.
  base::Result<std::string> token() const;
  /// Certificates of those who sign the API server's.
  std::filesystem::path authorities() const { return directory_ / "ca.crt"; }

 private:
  std::filesystem::path directory_;
};

}  // namespace ka::cluster
