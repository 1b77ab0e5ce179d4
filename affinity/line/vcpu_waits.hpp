// SPDX-License-Identifier: Apache-2.0
// How long vCPUs were ready to run and had to wait for a CPU: what hypervisors call CPU ready or
// steal, seen from the host.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "affinity/line/node.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::line {

/// Sums over the vCPUs that serve a container. A vCPU that ends, or that serves another container
/// from now on, takes nothing of the sum with it: sums never fall.
class VcpuWaits {
 public:
  /// Nanoseconds by container id; "" stands for the vCPUs that serve no container alone.
  using ByContainer = std::map<std::string, std::uint64_t>;
  using Sums = std::map<std::string, ByContainer, std::less<>>;  ///< by sandbox

  /// `node` must outlive it.
  explicit VcpuWaits(const Node& node) : node_(node) {}

  /// Reads each vCPU of the node. One that cannot be read adds nothing this time.
  const Sums& read();

 private:
  void read(const std::string& id, const Sandbox& sandbox);

  const Node& node_;
  Sums sums_;
  /// By sandbox: the last value of each vCPU's counter.
  std::map<std::string, std::map<policy::ThreadKey, std::uint64_t>, std::less<>> last_;
};

}  // namespace ka::line
