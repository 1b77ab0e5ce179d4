// SPDX-License-Identifier: Apache-2.0
// The daemon at its socket for reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "affinity/cluster/view/classes.hpp"
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
  /// What containers ask for, as it knows; none where kubelet gives containers their CPUs.
  base::Result<std::vector<ClassRequest>> class_requests() const;
  /// Tells it otherwise. kUnavailable: it does not take it; kNotFound: the container is gone.
  base::Result<void> report(const ClassRequest& request) const;
  /// Has the daemon read the kernel afresh.
  base::Result<NodeState> verify() const;

 private:
  base::Result<std::string> request(const std::string& method, const std::string& target) const;

  std::filesystem::path socket_;
};

}  // namespace ka::cluster
