// SPDX-License-Identifier: Apache-2.0
// The machine as a value: CPUs, where they sit, how far its NUMA nodes are apart. It can be read
// from a host, recorded, invented and compared; nothing here reads the machine we run on.
//
// Ids are the kernel's (or hwloc's) and are never dense by assumption: CPUs may be offline, nodes
// may have no CPU, a core may have 1, 2, 4 or 8 threads, a node several L3 caches or none.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/facts/expected.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::policy {

/// One logical CPU. `core`, `l3` and `numa` are machine-wide ids.
struct Cpu {
  int cpu = 0;
  int core = 0;
  int socket = 0;
  int numa = 0;
  int l3 = 0;
  int kind = 0;           ///< hwloc's CPU kind: higher is faster; 0 everywhere on uniform machines
  bool isolated = false;  ///< under isolcpus: the scheduler does not balance load over it
  bool online = true;
  bool nohz_full = false;  ///< under nohz_full: no timer tick while it runs one thread

  bool operator==(const Cpu&) const = default;
};

class Topology {
 public:
  Topology() = default;

  /// Checks and takes the parts. `nodes` names the rows of `distances`; when it is empty, the rows
  /// are the nodes of the CPUs in ascending order. Without distances, they are 10 on the diagonal
  /// and 20 elsewhere (ACPI's SLIT defaults). Errors say what is wrong in one sentence: a CPU
  /// twice, an id out of bounds, a core that spans sockets, a matrix that does not fit.
  static Expected<Topology, std::string> make(std::vector<Cpu> cpus,
                                              std::vector<std::vector<int>> distances = {},
                                              std::vector<int> nodes = {});

  /// All CPUs by ascending number.
  const std::vector<Cpu>& cpus() const { return cpus_; }
  /// nullptr where the machine has no such CPU.
  const Cpu* find(int cpu) const;

  const CpuSet& all() const { return all_; }
  const CpuSet& online() const { return online_; }
  const CpuSet& isolated() const { return isolated_; }
  const CpuSet& nohz_full() const { return nohz_full_; }
  /// Nodes with CPUs and nodes that only have memory.
  const NodeSet& nodes() const { return nodes_; }

  /// The online CPUs of a core, node, L3; empty for an id that does not exist.
  const CpuSet& core_cpus(int core) const { return lookup(by_core_, core); }
  const CpuSet& node_cpus(int node) const { return lookup(by_node_, node); }
  const CpuSet& l3_cpus(int l3) const { return lookup(by_l3_, l3); }

  /// The online CPUs that share a core with `cpu`, itself included.
  const CpuSet& siblings(int cpu) const;
  /// The nodes that the CPUs of a set lie on.
  NodeSet nodes_of(const CpuSet& cpus) const;
  /// SLIT distance; 0 for a node that does not exist.
  int distance(int from, int to) const;
  /// Rows and columns in the order of nodes().
  const std::vector<std::vector<int>>& distances() const { return distances_; }

  bool operator==(const Topology& other) const {
    return cpus_ == other.cpus_ && nodes_ == other.nodes_ && distances_ == other.distances_;
  }

 private:
  using Groups = std::map<int, CpuSet>;

  static const CpuSet& lookup(const Groups& groups, int id);
  void index();

  std::vector<Cpu> cpus_;
  std::vector<int> position_;  ///< by CPU number: index into cpus_, -1 where there is none
  CpuSet all_, online_, isolated_, nohz_full_;
  NodeSet nodes_;
  Groups by_core_, by_node_, by_l3_;
  std::vector<int> node_ids_;
  std::vector<std::vector<int>> distances_;
};

}  // namespace ka::policy
