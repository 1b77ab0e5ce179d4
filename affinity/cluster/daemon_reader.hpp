// SPDX-License-Identifier: Apache-2.0
// What the daemon answers on its socket for reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "affinity/cluster/view/node.hpp"
#include "base/result.hpp"

namespace ka::cluster {

struct DaemonView {
  std::vector<Sandbox> sandboxes;
  std::vector<Drift> drifts;
};

class DaemonReader {
 public:
  explicit DaemonReader(std::filesystem::path socket) : socket_(std::move(socket)) {}

  /// kUnavailable: nobody answers, or not yet: its sources have not reported.
  base::Result<DaemonView> view() const;
  /// Has the daemon read the kernel afresh.
  base::Result<NodeState> verify() const;

 private:
  base::Result<std::string> request(const std::string& method, const std::string& target) const;

  std::filesystem::path socket_;
};

}  // namespace ka::cluster
