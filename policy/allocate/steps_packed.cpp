// SPDX-License-Identifier: Apache-2.0
// PreScore, Select, Score and Allocate of the packed policy (takeByTopologyNUMAPacked), and what
// every policy uses of them.
#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <vector>

#include "policy/allocate/steps.hpp"

namespace ka::policy::allocate::steps {
namespace {

std::optional<CpuLevel> level_of(Stage stage) {
  switch (stage) {
    case Stage::kSockets:
      return CpuLevel::kSocket;
    case Stage::kNodes:
      return CpuLevel::kNode;
    case Stage::kL3s:
      return CpuLevel::kL3;
    case Stage::kCores:
      return CpuLevel::kCore;
    default:
      return std::nullopt;
  }
}

void list(Cycle& cycle, CpuSet cpus) {
  if (!cpus.empty()) cycle.candidates.push_back({.cpus = std::move(cpus)});
}

void note_listed(Cycle& cycle) {
  const int number = static_cast<int>(cycle.candidates.size());
  cycle.note({.what = Finding::What::kListed, .number = number});
}

bool has_free(const Cycle& cycle, int l3, int core) {
  if (cycle.free.count(CpuLevel::kCore, core) == 0) return false;
  if (cycle.machine.around(CpuLevel::kCore, core, CpuLevel::kL3) == l3) return true;
  return cycle.free.in(CpuLevel::kCore, core).intersects(cycle.free.in(CpuLevel::kL3, l3));
}

/// The first CPUs of as many cores of an L3 as the rest of the request needs, where these are just
/// as many CPUs; kubelet drops the last one when an odd number is needed (takePartialUncore).
CpuSet piece_of(const Cycle& cycle, int l3) {
  const int per_core = cycle.machine.average_core();
  const auto cores = static_cast<std::size_t>((cycle.needed + per_core - 1) / per_core);
  std::vector<int> chosen;
  int size = 0;
  for (const int core : cycle.machine.cores_of_l3(l3)) {
    if (chosen.size() == cores) break;
    if (!has_free(cycle, l3, core)) continue;
    chosen.push_back(core);
    size += cycle.free.count(CpuLevel::kCore, core);
  }
  const bool odd = cycle.needed % 2 != 0 && per_core > 1;
  const bool drop = odd && size > cycle.needed;
  if (size - (drop ? 1 : 0) != cycle.needed) return {};
  CpuSet piece;
  for (const int core : chosen) piece |= cycle.free.in(CpuLevel::kCore, core);
  if (drop) piece.remove(piece.last());
  return piece;
}

/// How many cores of each size make exactly `needed` CPUs, as many of the largest as possible, then
/// of the next; none where no choice does. Cores may have any number of threads: 4 + 3 + 3 hold 6
/// without the largest.
std::map<int, int> cores_that_add_up(const std::map<int, int>& free, int needed) {
  // Sums that the sizes from the smallest up to each one can make.
  std::vector<std::vector<bool>> reached{std::vector<bool>(static_cast<std::size_t>(needed) + 1)};
  reached.front().front() = true;
  for (const auto& [size, count] : free) {
    std::vector<bool> next(reached.front().size());
    for (std::size_t sum = 0; sum < next.size(); ++sum) {
      for (int cores = 0; cores <= count && !next[sum]; ++cores) {
        const auto part = static_cast<std::size_t>(cores) * static_cast<std::size_t>(size);
        next[sum] = part <= sum && reached.back()[sum - part];
      }
    }
    reached.push_back(std::move(next));
  }
  std::map<int, int> chosen;
  if (!reached.back().back()) return chosen;
  auto below = reached.rbegin();
  for (const auto& [size, count] : std::ranges::reverse_view(free)) {
    ++below;
    int cores = std::min(count, needed / size);
    while (!(*below)[static_cast<std::size_t>(needed) -
                     static_cast<std::size_t>(cores) * static_cast<std::size_t>(size)])
      --cores;
    chosen[size] = cores;
    needed -= cores * size;
  }
  return chosen;
}

}  // namespace

void count_free(Cycle& cycle) { cycle.free = FreeCpus(cycle.machine, cycle.pools.front()); }

void whole_groups(Cycle& cycle) {
  const auto level = level_of(cycle.stage);
  if (!level) return;
  if (cycle.stage == Stage::kL3s) {
    cycle.l3_order = cycle.free.order(CpuLevel::kL3);
    if (cycle.needed < cycle.machine.average_l3()) return;
  }
  const auto fits = [&cycle](const CpuGroup& group) { return group.size <= cycle.needed; };
  if (std::ranges::none_of(cycle.machine.groups(*level), fits)) return;
  for (const int group : cycle.free.whole_groups(*level)) {
    const CpuGroup& whole = cycle.machine.group(*level, group);
    if (fits(whole)) list(cycle, whole.cpus);
  }
  note_listed(cycle);
}

void part_of_l3(Cycle& cycle) {
  if (cycle.stage != Stage::kPartOfL3) return;
  for (const int l3 : cycle.l3_order) list(cycle, piece_of(cycle, l3));
  note_listed(cycle);
}

void single_cpus(Cycle& cycle) {
  if (cycle.stage != Stage::kCpus) return;
  const bool by_number = cycle.request.options.has(CpuOption::kDistributeAcrossCores);
  const std::vector<int> groups =
      by_number ? cycle.free.cpus_by_number() : cycle.free.order(CpuLevel::kCpu);
  cycle.candidates.reserve(groups.size());
  for (const int group : groups) list(cycle, cycle.machine.group(CpuLevel::kCpu, group).cpus);
  note_listed(cycle);
}

void rank(Cycle& cycle) {
  if (cycle.stage == Stage::kSplits) return;
  double position = 0;
  for (Candidate& candidate : cycle.candidates) candidate.score += position++;
}

/// Chosen cores come before all others, large ones first: taken in this order, they all fit.
void exact_cores(Cycle& cycle) {
  std::map<int, int> free;
  for (const Candidate& candidate : cycle.candidates) ++free[candidate.cpus.size()];
  std::map<int, int> chosen = cores_that_add_up(free, cycle.needed);
  const double step = cycle.machine.cpus().size();
  for (Candidate& candidate : cycle.candidates) {
    if (chosen[candidate.cpus.size()]-- > 0) candidate.score -= step * candidate.cpus.size();
  }
}

void take_fitting(Cycle& cycle) {
  if (cycle.stage == Stage::kSplits) return;
  CpuSet chosen;
  int needed = cycle.needed;
  for (const Candidate& candidate : cycle.candidates) {
    if (needed == 0) break;
    const int size = candidate.cpus.size();
    if (size > needed) continue;
    needed -= size;
    chosen |= candidate.cpus;
    if (!cycle.request.explain) continue;
    cycle.note({.what = Finding::What::kChosen, .cpus = candidate.cpus, .score = candidate.score});
  }
  cycle.take(chosen);
}

}  // namespace ka::policy::allocate::steps
