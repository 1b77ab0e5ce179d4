// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/fitting.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "policy/allocate/allocate.hpp"
#include "policy/allocate/cpu_hints.hpp"

namespace ka::policy::allocate {
namespace {

/// Lexicographic costs in fields of 16 bits, so that to add and to compare are single operations.
struct Cost {
  std::uint64_t spread = 0;  ///< nodes, sockets, L3 caches, broken cores
  std::uint64_t rest = 0;    ///< cores left in part, cores in part, room in the nodes, in the L3s

  auto operator<=>(const Cost&) const = default;
  friend Cost operator+(Cost a, Cost b) { return {a.spread + b.spread, a.rest + b.rest}; }
  bool possible() const { return spread < kImpossible; }

  static constexpr std::uint64_t kImpossible = std::uint64_t{1} << 62;
};

constexpr std::uint64_t fields(int a, int b, int c, int d) {
  std::uint64_t all = 0;
  for (const int field : {a, b, c, d}) all = all << 16 | static_cast<std::uint64_t>(field);
  return all;
}

/// For using a group in which so many CPUs are free.
Cost charge_for(CpuLevel level, int room) {
  if (level == CpuLevel::kNode) return {fields(1, 0, 0, 0), fields(0, 0, room, 0)};
  if (level == CpuLevel::kSocket) return {fields(0, 1, 0, 0), 0};
  return {fields(0, 0, 1, 0), fields(0, 0, 0, room)};
}

/// By number of CPUs taken, from 0 on.
using Table = std::vector<Cost>;

/// The cheapest way to take so many CPUs from two sides together.
Table sum_of(const Table& left, const Table& right, std::size_t most) {
  const std::size_t size = std::min(left.size() + right.size() - 2, most) + 1;
  Table sum(size, Cost{Cost::kImpossible, 0});
  for (std::size_t j = 0; j < right.size() && j < size; ++j) {
    if (!right[j].possible()) continue;
    const std::size_t end = std::min(left.size(), size - j);
    for (std::size_t i = 0; i < end; ++i) sum[i + j] = std::min(sum[i + j], left[i] + right[j]);
  }
  return sum;
}

/// A free CPU and the groups that it lies in, from the outermost level to its core.
struct Place {
  std::array<int, 4> groups{};
  int cpu = 0;

  auto operator<=>(const Place&) const = default;
};

using Places = std::vector<Place>;
using Levels = std::array<CpuLevel, 4>;

/// Whether a group lies in several of a level before its own.
bool is_cut(const Machine& machine, const Levels& levels, std::size_t depth, int group) {
  bool cut = false;
  for (std::size_t outer = 0; outer < depth; ++outer) {
    cut = cut || machine.around(levels[depth], group, levels[outer]) < 0;
  }
  return cut;
}

/// How many groups of each level are cut in parts by the levels before it.
std::size_t cuts(const Machine& machine, const Levels& levels) {
  std::size_t count = 0;
  for (std::size_t inner = 1; inner < 3; ++inner) {
    for (std::size_t group = 0; group < machine.groups(levels[inner]).size(); ++group) {
      if (is_cut(machine, levels, inner, static_cast<int>(group))) ++count;
    }
  }
  return count;
}

/// Nodes, sockets and L3s with the outer before the inner, as far as they are nested; then cores.
Levels levels_of(const Machine& machine) {
  using enum CpuLevel;
  static constexpr Levels kOrders[] = {{kSocket, kNode, kL3, kCore}, {kNode, kSocket, kL3, kCore},
                                       {kSocket, kL3, kNode, kCore}, {kNode, kL3, kSocket, kCore},
                                       {kL3, kSocket, kNode, kCore}, {kL3, kNode, kSocket, kCore}};
  return *std::ranges::min_element(kOrders, {},
                                   [&](const Levels& levels) { return cuts(machine, levels); });
}

/// A group, or the part of it that lies in one of the level above.
struct Vertex {
  std::size_t begin = 0, end = 0;  ///< its places
  std::vector<Vertex> children;
  std::vector<Table> sums;  ///< of no child, the first, the first two, ...
  Table table;              ///< with what it costs to use the group at all
};

class Fit {
 public:
  /// `joined` costs nothing: CPUs on whose sockets, nodes and L3s the container is in any case.
  Fit(const Machine& machine, const FittingProblem& problem, const CpuSet& joined)
      : machine_(machine), problem_(problem), levels_(levels_of(machine)) {
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      joined_[depth].assign(machine.groups(levels_[depth]).size(), false);
      for (const int cpu : joined) joined_[depth][group_of(depth, cpu)] = true;
    }
  }

  /// Free CPUs of a group that overlaps others are had for nothing.
  void join(CpuLevel level, int group) {
    const auto depth =
        static_cast<std::size_t>(std::ranges::find(levels_, level) - levels_.begin());
    joined_[depth][static_cast<std::size_t>(group)] = true;
  }

  /// The best choice from `cpus`.
  std::optional<std::pair<Cost, CpuSet>> best_of(const CpuSet& cpus) {
    const auto needed = static_cast<std::size_t>(problem_.cpus);
    places_.clear();
    for (const int cpu : cpus) places_.push_back(place_of(cpu));
    std::ranges::sort(places_);
    const Vertex root = grown(0, places_.size(), 0);
    if (root.sums.back().size() <= needed || !root.sums.back()[needed].possible()) {
      return std::nullopt;
    }
    std::pair<Cost, CpuSet> best{root.sums.back()[needed], {}};
    collect(root, needed, best.second);
    return best;
  }

 private:
  std::size_t group_of(std::size_t depth, int cpu) const {
    return static_cast<std::size_t>(machine_.group_of(levels_[depth], cpu));
  }

  Place place_of(int cpu) const {
    Place place{.cpu = cpu};
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      place.groups[depth] = machine_.group_of(levels_[depth], cpu);
    }
    return place;
  }

  /// The places from `begin` to `end` share their groups above `depth`.
  Vertex grown(std::size_t begin, std::size_t end, std::size_t depth) const {
    Vertex vertex{.begin = begin, .end = end, .children = {}, .sums = {{Cost{}}}, .table = {}};
    for (std::size_t from = begin; from < end;) {
      const int group = places_[from].groups[depth];
      std::size_t to = from;
      while (to < end && places_[to].groups[depth] == group) ++to;
      Vertex child = depth + 1 == levels_.size() ? core(from, to) : grown(from, to, depth + 1);
      if (depth + 1 < levels_.size()) child.table = charged(child, depth, group);
      vertex.sums.push_back(
          sum_of(vertex.sums.back(), child.table, static_cast<std::size_t>(problem_.cpus)));
      vertex.children.push_back(std::move(child));
      from = to;
    }
    return vertex;
  }

  Table charged(const Vertex& vertex, std::size_t depth, int group) const {
    Table table = vertex.sums.back();
    if (joined_[depth][static_cast<std::size_t>(group)]) return table;
    const Cost charge = charge_for(levels_[depth], static_cast<int>(vertex.end - vertex.begin));
    for (std::size_t taken = 1; taken < table.size(); ++taken) table[taken] = table[taken] + charge;
    return table;
  }

  /// What is not free of the core belongs to the container.
  bool completed_beside(const CpuGroup& core, std::size_t free) const {
    if (problem_.beside.empty()) return false;
    return (core.cpus - problem_.beside).size() == static_cast<int>(free);
  }

  Vertex core(std::size_t begin, std::size_t end) const {
    const CpuGroup& core = machine_.group(CpuLevel::kCore, places_[begin].groups.back());
    const std::size_t free = end - begin;
    const bool whole = free == static_cast<std::size_t>(core.size);
    const bool completes = whole || completed_beside(core, free);
    const Cost never{Cost::kImpossible, 0};
    const Cost part{fields(0, 0, 0, whole ? 1 : 0), fields(1, 1, 0, 0)};
    Table table(free + 1, problem_.whole_cores ? never : part);
    table.front() = {};
    if (completes) table.back() = {};
    if (!completes && !problem_.whole_cores) table.back() = {0, fields(0, 1, 0, 0)};
    return {.begin = begin, .end = end, .children = {}, .sums = {}, .table = std::move(table)};
  }

  /// Goes back over the sums: what each child gave.
  void collect(const Vertex& vertex, std::size_t taken, CpuSet& cpus) const {
    if (vertex.children.empty()) {
      for (std::size_t i = 0; i < taken; ++i) cpus.add(places_[vertex.begin + i].cpu);
      return;
    }
    for (std::size_t child = vertex.children.size(); child-- > 0;) {
      const Table& table = vertex.children[child].table;
      const Table& before = vertex.sums[child];
      const Cost& all = vertex.sums[child + 1][taken];
      std::size_t part = taken < before.size() ? 0 : taken + 1 - before.size();
      while (before[taken - part] + table[part] != all) ++part;
      collect(vertex.children[child], part, cpus);
      taken -= part;
    }
  }

  const Machine& machine_;
  const FittingProblem& problem_;
  Levels levels_;
  std::array<std::vector<bool>, 4> joined_;
  Places places_;
};

using Choice = std::optional<std::pair<Cost, CpuSet>>;

void keep_better(Choice& best, Choice other) {
  if (other && (!best || other->first < best->first)) best = std::move(other);
}

/// Nothing spans fewer nodes than one: where one holds all, no two need to be looked at together.
Choice best_of_nodes(const Machine& machine, const FittingProblem& problem, const CpuSet& free,
                     Fit& fit) {
  Choice best;
  for (const CpuGroup& node : machine.groups(CpuLevel::kNode)) {
    const CpuSet cpus = free & node.cpus;
    if (cpus.size() >= problem.cpus) keep_better(best, fit.best_of(cpus));
  }
  return best;
}

Choice best_from(const Machine& machine, const FittingProblem& problem, const CpuSet& free,
                 Fit& fit) {
  Choice best;
  if (problem.beside.empty()) best = best_of_nodes(machine, problem, free, fit);
  return best ? best : fit.best_of(free);
}

using Groups = std::vector<std::pair<CpuLevel, int>>;

/// Those with free CPUs that a level above cuts in parts.
Groups overlapping(const Machine& machine, const CpuSet& free) {
  const Levels levels = levels_of(machine);
  Groups found;
  for (std::size_t inner = 1; inner < 3; ++inner) {
    const int count = static_cast<int>(machine.groups(levels[inner]).size());
    for (int group = 0; group < count; ++group) {
      const bool used = machine.group(levels[inner], group).cpus.intersects(free);
      if (used && is_cut(machine, levels, inner, group)) found.emplace_back(levels[inner], group);
    }
  }
  return found;
}

/// With the groups that `used` has a bit for, paid for as a whole, and without the others.
Choice best_with(const Machine& machine, const FittingProblem& problem, const Groups& groups,
                 unsigned used) {
  Fit fit(machine, problem, problem.beside);
  CpuSet free = problem.free;
  Cost paid;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& [level, number] = groups[i];
    const CpuSet& cpus = machine.group(level, number).cpus;
    if ((used >> i & 1) == 0) {
      free -= cpus;
      continue;
    }
    fit.join(level, number);
    if (!cpus.intersects(problem.beside)) paid = paid + charge_for(level, 0);
  }
  // A node that is paid for may cost another one nothing: then one is not always better than two.
  Choice best = used == 0 ? best_from(machine, problem, free, fit) : fit.best_of(free);
  if (best) best->first = best->first + paid;
  return best;
}

int touched(const Machine& machine, CpuLevel level, const CpuSet& cpus) {
  const auto lies_on = [&](const CpuGroup& group) { return group.cpus.intersects(cpus); };
  return static_cast<int>(std::ranges::count_if(machine.groups(level), lies_on));
}

/// kubelet's answers: without hints, and with the merged hint of the CPUs themselves.
std::vector<CpuSet> packed_answers(const Machine& machine, const FittingProblem& problem) {
  CpuRequest request{.cpus = problem.cpus, .available = problem.free};
  if (problem.whole_cores) request.options.add(CpuOption::kFullPcpusOnly);
  const HintProblem hints{
      .nodes = machine.topology().nodes(),
      .providers = {
          {{"cpu", cpu_hints(machine, {.available = problem.free, .cpus = problem.cpus})}}}};
  std::vector<CpuSet> answers;
  for (const bool hinted : {false, true}) {
    const auto merged = merge_hints(hints);
    if (hinted && merged) request.numa_affinity = merged->affinity;
    if (auto answer = allocate(machine, request, packed_policy())) answers.push_back(answer->cpus);
  }
  return answers;
}

/// Where too many groups overlap: each part of one counts, and kubelet's answers are the measure.
std::optional<CpuSet> nearly_best(const Machine& machine, const FittingProblem& problem) {
  Fit fit(machine, problem, problem.beside);
  const Choice choice = best_from(machine, problem, problem.free, fit);
  if (!choice) return std::nullopt;
  CpuSet best = choice->second;
  for (CpuSet& answer : packed_answers(machine, problem)) {
    const auto spread = [&](const CpuSet& cpus) {
      return spread_of(machine, problem.free, cpus | problem.beside);
    };
    if (spread(answer) < spread(best)) best = std::move(answer);
  }
  return best;
}

}  // namespace

Spread spread_of(const Machine& machine, const CpuSet& free, const CpuSet& cpus) {
  const auto broken = [&](const CpuGroup& core) {
    return core.cpus.intersects(cpus) && core.cpus.subset_of(free) && !core.cpus.subset_of(cpus);
  };
  return {touched(machine, CpuLevel::kNode, cpus), touched(machine, CpuLevel::kSocket, cpus),
          touched(machine, CpuLevel::kL3, cpus),
          static_cast<int>(std::ranges::count_if(machine.groups(CpuLevel::kCore), broken))};
}

std::optional<CpuSet> best_fit(const Machine& machine, const FittingProblem& problem) {
  const Groups groups = overlapping(machine, problem.free);
  if (groups.size() > kExactOverlaps) return nearly_best(machine, problem);
  Choice best;
  for (unsigned used = 0; used < 1U << groups.size(); ++used) {
    keep_better(best, best_with(machine, problem, groups, used));
  }
  return best ? std::optional(std::move(best->second)) : std::nullopt;
}

}  // namespace ka::policy::allocate
