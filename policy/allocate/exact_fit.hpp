// SPDX-License-Identifier: Apache-2.0
// The cheapest choice of CPUs on a machine whose groups nest: the costs of every number of CPUs,
// from the cores up.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "policy/allocate/fitting.hpp"
#include "policy/allocate/node_limit.hpp"

namespace ka::policy::allocate {

/// A choice and what it costs.
struct Fitted {
  Cost cost;
  CpuSet cpus;
};

class ExactFit {
 public:
  /// The groups that `problem.beside` lies on cost nothing. `machine` and `problem` must outlive
  /// this.
  ExactFit(const Machine& machine, const FittingProblem& problem);

  /// From now on, that group costs nothing.
  void join(CpuLevel level, int group);

  /// The best choice from `cpus`; absent where they do not hold the request.
  std::optional<Fitted> best_of(const CpuSet& cpus);

 private:
  /// A free CPU and the groups that it lies in, from the outermost level to its core.
  struct Place {
    std::array<int, 4> groups{};
    int cpu = 0;
  };
  /// A group, or the part of it that lies in one of the level above.
  struct Vertex {
    std::size_t begin = 0, end = 0;  ///< its places
    std::vector<Vertex> children;
    std::vector<CostTable> sums;  ///< of no child, the first, the first two, ...
    CostTable table;              ///< with what it costs to use the group at all
  };

  bool joined(std::size_t depth, int group) const;
  std::vector<Place> places_of(const CpuSet& cpus) const;
  NodeLimit limit_of_nodes(const CpuSet& cpus) const;
  bool same_groups(std::size_t one, std::size_t other, std::size_t depth) const;
  std::optional<Fitted> solution(const NodeLimit& limit) const;
  Vertex grown(std::size_t begin, std::size_t end, std::size_t depth, const NodeLimit& limit) const;
  std::size_t end_of_group(std::size_t from, std::size_t end, std::size_t depth) const;
  Vertex child(std::size_t begin, std::size_t end, std::size_t depth, const NodeLimit& limit) const;
  Vertex node(std::size_t begin, std::size_t end, const NodeLimit& limit) const;
  void charge(Vertex& vertex, std::size_t depth) const;
  Vertex core(std::size_t begin, std::size_t end) const;
  bool completed_beside(const CpuGroup& core, int free) const;
  void collect(const Vertex& vertex, int taken, CpuSet& cpus) const;

  const Machine& machine_;
  const FittingProblem& problem_;
  std::size_t node_depth_ = 0;
  std::array<std::vector<bool>, 4> joined_;
  std::vector<Place> places_;
};

}  // namespace ka::policy::allocate
