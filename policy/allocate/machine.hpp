// SPDX-License-Identifier: Apache-2.0
// A topology prepared for allocation: every socket, node, L3, core and CPU as a numbered group, and
// which groups lie in which. Built once for a machine and shared by all requests.
//
// Only online CPUs exist here. Within a level, groups are numbered from 0 by ascending id, so that
// comparing numbers compares ids; cores by their lowest online CPU, which is kubelet's id of a core
// (getUniqueCoreID of topology.go).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/topology.hpp"

namespace ka::policy::allocate {

enum class CpuLevel { kSocket, kNode, kL3, kCore, kCpu };

inline constexpr std::size_t kCpuLevels = 5;

/// CPUs that share something of a level; of level kCpu, one CPU.
struct CpuGroup {
  int id = 0;  ///< the topology's id
  CpuSet cpus;
  int size = 0;
};

/// Levels from the outermost to the cores.
using Nesting = std::array<CpuLevel, 4>;

class Machine {
 public:
  explicit Machine(Topology topology);

  const Topology& topology() const { return topology_; }
  const CpuSet& cpus() const { return topology_.online(); }

  const std::vector<CpuGroup>& groups(CpuLevel level) const { return at(level).groups; }
  const CpuGroup& group(CpuLevel level, int number) const {
    return at(level).groups[static_cast<std::size_t>(number)];
  }
  /// The group that an online CPU lies in.
  int group_of(CpuLevel level, int cpu) const {
    return at(level).group_of[static_cast<std::size_t>(cpu)];
  }
  /// The group of `outer` that a group of `inner` lies in; -1 when it lies in several.
  int around(CpuLevel inner, int number, CpuLevel outer) const {
    return at(inner).around[static_cast<std::size_t>(outer)][static_cast<std::size_t>(number)];
  }
  /// The cores that share a CPU with an L3, ascending.
  const std::vector<int>& cores_of_l3(int l3) const {
    return cores_of_l3_[static_cast<std::size_t>(l3)];
  }
  /// All nodes by number, that one first, then by their distance from it, then by number.
  const std::vector<int>& nodes_near(int node) const {
    return nodes_near_[static_cast<std::size_t>(node)];
  }

  /// The level within which a level's groups are ordered, none for the outermost. As in kubelet,
  /// nodes contain sockets on a machine with at least as many sockets as nodes, and sockets contain
  /// nodes elsewhere.
  std::optional<CpuLevel> parent(CpuLevel level) const;
  bool nodes_outermost() const;

  /// Nodes, sockets and L3s with the outer before the inner, as far as they are nested; then cores.
  const Nesting& nesting() const { return nesting_; }
  /// The group lies in several of a level before its own.
  bool is_cut(const Nesting& nesting, std::size_t depth, int group) const;
  /// All CPUs, ordered by their groups on each level of nesting(), then by number.
  const std::vector<int>& nested_cpus() const { return nested_cpus_; }

  /// CPUs divided by cores, rounded down: what kubelet takes for the threads of every core.
  int average_core() const { return average(CpuLevel::kCore); }
  int average_l3() const { return average(CpuLevel::kL3); }
  /// Every core has the same number of online threads.
  bool uniform_cores() const;
  /// Every core that one of `cpus` lies on is in `cpus` as a whole.
  bool whole_cores(const CpuSet& cpus) const;
  /// The cores that lie in `cpus` as a whole.
  CpuSet whole_cores_in(const CpuSet& cpus) const;
  /// All threads of every core that one of `cpus` lies on.
  CpuSet with_siblings(const CpuSet& cpus) const;
  CpuSet cpus_of_nodes(const NodeSet& nodes) const;
  CpuSet cpus_of_sockets_of(const NodeSet& nodes) const;

 private:
  struct Layer {
    std::vector<CpuGroup> groups;
    std::vector<int> group_of;                        ///< by CPU number, -1 where there is none
    std::array<std::vector<int>, kCpuLevels> around;  ///< by level and group
  };

  const Layer& at(CpuLevel level) const { return layers_[static_cast<std::size_t>(level)]; }
  void find_around(CpuLevel inner);
  void find_cores();
  void find_near();
  void find_nesting();
  std::size_t cuts_of(const Nesting& nesting) const;
  int average(CpuLevel level) const;
  CpuSet groups_of(CpuLevel level, const CpuSet& cpus) const;

  Topology topology_;
  std::array<Layer, kCpuLevels> layers_;
  std::vector<std::vector<int>> cores_of_l3_;
  std::vector<std::vector<int>> nodes_near_;
  Nesting nesting_{};
  std::vector<int> nested_cpus_;
};

}  // namespace ka::policy::allocate
