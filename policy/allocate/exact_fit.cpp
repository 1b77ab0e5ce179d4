// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/exact_fit.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::allocate {

ExactFit::ExactFit(const Machine& machine, const FittingProblem& problem)
    : machine_(machine), problem_(problem) {
  const Nesting& nesting = machine.nesting();
  for (std::size_t depth = 0; depth < nesting.size(); ++depth) {
    if (nesting[depth] == CpuLevel::kNode) node_depth_ = depth;
    joined_[depth].assign(machine.groups(nesting[depth]).size(), false);
    for (const int cpu : problem.beside)
      join(nesting[depth], machine.group_of(nesting[depth], cpu));
  }
}

void ExactFit::join(CpuLevel level, int group) {
  const auto depth = std::ranges::find(machine_.nesting(), level) - machine_.nesting().begin();
  joined_[static_cast<std::size_t>(depth)][static_cast<std::size_t>(group)] = true;
}

bool ExactFit::joined(std::size_t depth, int group) const {
  return joined_[depth][static_cast<std::size_t>(group)];
}

std::optional<Fitted> ExactFit::best_of(const CpuSet& cpus) {
  places_ = places_of(cpus);
  NodeLimit limit = limit_of_nodes(cpus);
  if (!limit.enough()) return std::nullopt;
  if (auto found = solution(limit)) return found;
  limit.lift();  // whole cores need not add up on the fewest nodes
  return solution(limit);
}

std::vector<ExactFit::Place> ExactFit::places_of(const CpuSet& cpus) const {
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(cpus.size()));
  for (const int cpu : machine_.nested_cpus()) {
    if (!cpus.contains(cpu)) continue;
    Place& place = places.emplace_back(Place{.cpu = cpu});
    for (std::size_t depth = 0; depth < place.groups.size(); ++depth) {
      place.groups[depth] = machine_.group_of(machine_.nesting()[depth], cpu);
    }
  }
  return places;
}

NodeLimit ExactFit::limit_of_nodes(const CpuSet& cpus) const {
  const CpuSet usable =
      problem_.whole_cores ? machine_.whole_cores_in(cpus | problem_.beside) : cpus;
  std::vector<NodeSupply> supplies;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    if (place == 0 || !same_groups(place - 1, place, node_depth_)) {
      const bool charged = !joined(node_depth_, places_[place].groups[node_depth_]);
      supplies.push_back({place, 0, charged});
    }
    if (usable.contains(places_[place].cpu)) ++supplies.back().cpus;
  }
  return {std::move(supplies), problem_.cpus};
}

/// Down to `depth`.
bool ExactFit::same_groups(std::size_t one, std::size_t other, std::size_t depth) const {
  const auto& groups = places_[one].groups;
  const auto count = static_cast<std::ptrdiff_t>(depth) + 1;
  return std::equal(groups.begin(), groups.begin() + count, places_[other].groups.begin());
}

std::optional<Fitted> ExactFit::solution(const NodeLimit& limit) const {
  const Vertex root = grown(0, places_.size(), 0, limit);
  const Cost* cost = find_cost(root.sums.back(), problem_.cpus);
  if (cost == nullptr) return std::nullopt;
  Fitted fitted{*cost, {}};
  collect(root, problem_.cpus, fitted.cpus);
  return fitted;
}

/// The places from `begin` to `end` share their groups above `depth`.
ExactFit::Vertex ExactFit::grown(std::size_t begin, std::size_t end, std::size_t depth,
                                 const NodeLimit& limit) const {
  Vertex vertex{.begin = begin, .end = end, .children = {}, .sums = {{CostEntry{}}}, .table = {}};
  for (std::size_t from = begin; from < end;) {
    const std::size_t to = end_of_group(from, end, depth);
    vertex.children.push_back(child(from, to, depth, limit));
    CostTable sum = sum_of(vertex.sums.back(), vertex.children.back().table, problem_.cpus);
    if (depth <= node_depth_) limit.outside(begin, to).keep_complete(sum);
    vertex.sums.push_back(std::move(sum));
    from = to;
  }
  return vertex;
}

std::size_t ExactFit::end_of_group(std::size_t from, std::size_t end, std::size_t depth) const {
  const int group = places_[from].groups[depth];
  while (from < end && places_[from].groups[depth] == group) ++from;
  return from;
}

ExactFit::Vertex ExactFit::child(std::size_t begin, std::size_t end, std::size_t depth,
                                 const NodeLimit& limit) const {
  if (depth + 1 == places_[begin].groups.size()) return core(begin, end);
  if (depth == node_depth_) return node(begin, end, limit);
  Vertex vertex = grown(begin, end, depth + 1, limit);
  vertex.table = vertex.sums.back();
  charge(vertex, depth);
  return vertex;
}

/// With no CPU to be had where even all of them are too few.
ExactFit::Vertex ExactFit::node(std::size_t begin, std::size_t end, const NodeLimit& limit) const {
  const Outside outside = limit.outside(begin, end);
  Vertex all{.begin = begin, .end = end, .table = {{}, {static_cast<int>(end - begin), {}}}};
  charge(all, node_depth_);
  outside.keep_complete(all.table);
  if (all.table.empty() || all.table.back().cpus == 0) return all;
  Vertex vertex = grown(begin, end, node_depth_ + 1, limit);
  vertex.table = vertex.sums.back();
  charge(vertex, node_depth_);
  outside.keep_complete(vertex.table);
  return vertex;
}

void ExactFit::charge(Vertex& vertex, std::size_t depth) const {
  if (joined(depth, places_[vertex.begin].groups[depth])) return;
  const int room = static_cast<int>(vertex.end - vertex.begin);
  const Cost charge = charge_for(machine_.nesting()[depth], room);
  for (CostEntry& entry : vertex.table) {
    if (entry.cpus > 0) entry.cost = entry.cost + charge;
  }
}

ExactFit::Vertex ExactFit::core(std::size_t begin, std::size_t end) const {
  const CpuGroup& core = machine_.group(CpuLevel::kCore, places_[begin].groups.back());
  const int free = static_cast<int>(end - begin);
  const bool whole = free == core.size;
  const bool completes = whole || completed_beside(core, free);
  CostTable table{CostEntry{}};
  for (int cpus = 1; cpus < free && !problem_.whole_cores; ++cpus) {
    table.push_back({cpus, whole ? charge_for_breaking() : charge_for_leaving()});
  }
  if (completes || !problem_.whole_cores) {
    table.push_back({free, completes ? Cost{} : charge_for_sharing()});
  }
  return {.begin = begin, .end = end, .children = {}, .sums = {}, .table = std::move(table)};
}

/// What is not free of the core belongs to the container.
bool ExactFit::completed_beside(const CpuGroup& core, int free) const {
  return !problem_.beside.empty() && (core.cpus - problem_.beside).size() == free;
}

/// Goes back over the sums: what each child gave.
void ExactFit::collect(const Vertex& vertex, int taken, CpuSet& cpus) const {
  if (vertex.children.empty()) {
    for (int i = 0; i < taken; ++i)
      cpus.add(places_[vertex.begin + static_cast<std::size_t>(i)].cpu);
    return;
  }
  for (std::size_t child = vertex.children.size(); child-- > 0;) {
    const CostTable& before = vertex.sums[child];
    const Cost& all = *find_cost(vertex.sums[child + 1], taken);
    const auto gave = [&](const CostEntry& entry) {
      const Cost* rest = find_cost(before, taken - entry.cpus);
      return rest != nullptr && *rest + entry.cost == all;
    };
    const auto part = std::ranges::find_if(vertex.children[child].table, gave);
    collect(vertex.children[child], part->cpus, cpus);
    taken -= part->cpus;
  }
}

}  // namespace ka::policy::allocate
