// SPDX-License-Identifier: Apache-2.0
// How well the vCPUs of one container match the host's topology: how many guest siblings share a
// host core, how many vCPUs of a guest node share a host node (I5).
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "policy/facts/sandbox.hpp"
#include "policy/facts/topology.hpp"

namespace ka::policy::plan {

/// A guest core, as the guest numbers it: within its socket.
inline std::pair<int, int> guest_core(const VcpuFacts& vcpu) { return {vcpu.socket, vcpu.core}; }

/// Counts how many members of each guest group lie in each host group.
class Overlap {
 public:
  /// Group ids of seat i on the guest's and on the host's side; any numbers.
  Overlap(std::vector<int> guest, std::vector<int> host);

  /// False where every guest group has one member or all lie in one host group: nothing to gain.
  bool matters() const { return matters_; }
  /// How many more pairs of a guest group would share a host group if the guests of seats i and j
  /// changed places.
  int gain(std::size_t i, std::size_t j) const;
  void swap(std::size_t i, std::size_t j);

 private:
  int& count(int host, int guest) { return counts_[index(host, guest)]; }
  int count(int host, int guest) const { return counts_[index(host, guest)]; }
  std::size_t index(int host, int guest) const {
    return static_cast<std::size_t>(host) * guests_ + static_cast<std::size_t>(guest);
  }

  std::vector<int> guest_, host_;  ///< by seat, renumbered densely
  std::size_t guests_ = 0;
  std::vector<int> counts_;
  bool matters_ = false;
};

/// A vCPU and the CPU that is its own.
struct Seat {
  const VcpuFacts* vcpu = nullptr;
  const Cpu* cpu = nullptr;
};

/// The seats of one container, and what changing places would bring.
class Closeness {
 public:
  explicit Closeness(const std::vector<Seat>& seats);

  bool matters() const { return siblings_.matters() || nodes_.matters(); }
  /// True when changing places brings more guest siblings together, or as many and more vCPUs of a
  /// guest node.
  bool better_swapped(std::size_t i, std::size_t j) const {
    return std::tuple(siblings_.gain(i, j), nodes_.gain(i, j)) > std::tuple(0, 0);
  }
  void swap(std::size_t i, std::size_t j) {
    siblings_.swap(i, j);
    nodes_.swap(i, j);
  }

 private:
  Overlap siblings_, nodes_;
};

}  // namespace ka::policy::plan
