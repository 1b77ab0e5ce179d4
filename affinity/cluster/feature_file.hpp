// SPDX-License-Identifier: Apache-2.0
// A file from which Node Feature Discovery makes the node's label.
#pragma once

#include <filesystem>
#include <optional>

#include "affinity/cluster/view/node.hpp"
#include "base/result.hpp"

namespace ka::cluster {

class FeatureFile {
 public:
  /// `path` alone is mounted, not its directory: the file is neither made nor replaced here.
  explicit FeatureFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Absent: the label goes. Does nothing where the file says so already. kGone: it was removed
  /// from the node, and what is mounted is read by no one.
  base::Result<void> write(std::optional<NodeState> state) const;

 private:
  std::filesystem::path path_;
};

}  // namespace ka::cluster
