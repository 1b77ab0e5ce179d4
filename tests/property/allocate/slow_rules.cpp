// SPDX-License-Identifier: Apache-2.0
#include "tests/property/allocate/slow_rules.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace ka::test {
namespace {

using namespace ka::policy;
using namespace ka::policy::allocate;
using Id = int Cpu::*;
using Ids = std::vector<int>;

class Taker {
 public:
  Taker(const Topology& topology, const SlowRequest& request)
      : topology_(topology), request_(request), free_(request.available), needed_(request.cpus) {
    nodes_outside_ = all_ids(&Cpu::socket).size() >= all_ids(&Cpu::numa).size();
  }

  CpuSet packed() {
    take_whole(nodes_outside_ ? &Cpu::numa : &Cpu::socket);
    take_whole(nodes_outside_ ? &Cpu::socket : &Cpu::numa);
    if (wants(CpuOption::kPreferAlignByUncoreCache)) take_caches();
    const bool spread = wants(CpuOption::kDistributeAcrossCores);
    if (!spread) take_whole(&Cpu::core);
    const Ids singles = spread ? children(order(&Cpu::socket), &Cpu::socket, &Cpu::cpu)
                               : children(order(&Cpu::core), &Cpu::core, &Cpu::cpu);
    for (const int cpu : singles) {
      if (needed_ > 0) take({cpu});
    }
    return taken_;
  }

  CpuSet distributed() {
    const int group = request_.group_size;
    if (needed_ == 0 || needed_ % group != 0) return packed();
    const Ids nodes = order(&Cpu::numa);
    const int all_nodes = static_cast<int>(all_ids(&Cpu::numa).size());
    const int groups_per_node = up(up(topology_.online().size(), group), all_nodes);
    const int most = std::min(needed_ / group, static_cast<int>(nodes.size()));
    for (int count = up(needed_ / group, groups_per_node); count <= most; ++count) {
      const Best best = best_split(nodes, count);
      if (best.split.empty()) continue;
      deal(best, count);
      return taken_;
    }
    return packed();
  }

 private:
  static int up(int number, int by) { return (number + by - 1) / by; }
  bool wants(CpuOption option) const { return request_.options.has(option); }

  std::set<int> all_ids(Id level) const {
    std::set<int> ids;
    for (const int cpu : topology_.online()) ids.insert(topology_.find(cpu)->*level);
    return ids;
  }

  CpuSet part(const CpuSet& cpus, Id level, int id) const {
    CpuSet found;
    for (const int cpu : cpus) {
      if (topology_.find(cpu)->*level == id) found.add(cpu);
    }
    return found;
  }

  int free_in(Id level, int id) const { return part(free_, level, id).size(); }

  /// Fewest free CPUs first, then by id.
  Ids sorted(const std::set<int>& ids, Id level) const {
    Ids list(ids.begin(), ids.end());
    std::ranges::sort(list, {}, [&](int id) { return std::pair(free_in(level, id), id); });
    return list;
  }

  Ids children(const Ids& parents, Id outer, Id inner) const {
    Ids list;
    for (const int parent : parents) {
      std::set<int> ids;
      for (const int cpu : part(free_, outer, parent)) ids.insert(topology_.find(cpu)->*inner);
      for (const int id : sorted(ids, inner)) {
        if (std::ranges::find(list, id) == list.end()) list.push_back(id);
      }
    }
    return list;
  }

  Ids order(Id level) const {
    const Id outermost = nodes_outside_ ? &Cpu::numa : &Cpu::socket;
    if (level == outermost) {
      std::set<int> ids;
      for (const int cpu : free_) ids.insert(topology_.find(cpu)->*level);
      return sorted(ids, level);
    }
    Id parent = outermost;
    if (level == &Cpu::l3) parent = &Cpu::numa;
    if (level == &Cpu::core) parent = nodes_outside_ ? &Cpu::socket : &Cpu::numa;
    return children(order(parent), parent, level);
  }

  void take(const CpuSet& cpus) {
    taken_ |= cpus;
    free_ -= cpus;
    needed_ -= cpus.size();
  }

  void take_whole(Id level) {
    for (const int id : order(level)) {
      const CpuSet cpus = part(topology_.online(), level, id);
      if (cpus.subset_of(free_) && cpus.size() <= needed_) take(cpus);
    }
  }

  int average(Id level) const {
    return topology_.online().size() / static_cast<int>(all_ids(level).size());
  }

  void take_caches() {
    const Ids caches = order(&Cpu::l3);
    if (needed_ >= average(&Cpu::l3)) take_whole(&Cpu::l3);
    for (const int cache : caches) {
      if (needed_ > 0) take_part_of(cache);
    }
  }

  /// As many cores of a cache as the rest needs, when they hold just that.
  void take_part_of(int cache) {
    const int per_core = average(&Cpu::core);
    std::set<int> cores;
    for (const int cpu : part(topology_.online(), &Cpu::l3, cache)) {
      cores.insert(topology_.find(cpu)->core);
    }
    CpuSet cpus;
    int left = up(needed_, per_core);
    for (const int core : cores) {
      const CpuSet free = part(free_, &Cpu::core, core);
      if (part(free, &Cpu::l3, cache).empty() || left-- <= 0) continue;
      cpus |= free;
    }
    if (needed_ % 2 != 0 && per_core > 1 && cpus.size() > needed_) cpus.remove(cpus.last());
    if (cpus.size() == needed_) take(cpus);
  }

  static void subsets(const Ids& ids, int size, const std::function<void(const Ids&)>& seen,
                      std::size_t from = 0, const Ids& chosen = {}) {
    if (size == 0) return seen(chosen);
    for (std::size_t i = from; i < ids.size(); ++i) {
      Ids longer = chosen;
      longer.push_back(ids[i]);
      subsets(ids, size - 1, seen, i + 1, longer);
    }
  }

  static double rounded(double number) { return std::round(number * 1000) / 1000; }

  static double imbalance(const std::map<int, int>& left) {
    double sum = 0, squares = 0;
    for (const auto& [node, cpus] : left) sum += cpus;
    const double mean = rounded(sum / static_cast<double>(left.size()));
    for (const auto& [node, cpus] : left) squares += (cpus - mean) * (cpus - mean);
    return rounded(std::sqrt(squares / static_cast<double>(left.size())));
  }

  /// The nodes of the best split, then those that give what remains, a group each; empty when
  /// there is none.
  struct Best {
    Ids split;
    int even = 0;  ///< what each of the nodes gives first
    bool one_socket = false;
    double balance = std::numeric_limits<double>::max();
  };

  Best best_split(const Ids& nodes, int count) const {
    Best best;
    std::map<int, int> room;
    for (const int node : nodes) room[node] = free_in(&Cpu::numa, node);
    subsets(nodes, count, [&](const Ids& chosen) { try_split(chosen, room, best); });
    return best;
  }

  /// With align-by-socket no more than each of the nodes has.
  int share(const Ids& chosen, const std::map<int, int>& room) const {
    int even = needed_ / static_cast<int>(chosen.size());
    if (wants(CpuOption::kAlignBySocket)) {
      for (const int node : chosen) even = std::min(even, room.at(node));
    }
    return even / request_.group_size * request_.group_size;
  }

  bool on_one_socket(const Ids& chosen) const {
    std::set<int> sockets;
    for (const int node : chosen) {
      for (const int cpu : part(topology_.online(), &Cpu::numa, node)) {
        sockets.insert(topology_.find(cpu)->socket);
      }
    }
    return sockets.size() == 1;
  }

  void try_split(const Ids& chosen, std::map<int, int> left, Best& best) const {
    const int even = share(chosen, left);
    const bool one_socket = wants(CpuOption::kAlignBySocket) && on_one_socket(chosen);
    const int rest = (needed_ - even * static_cast<int>(chosen.size())) / request_.group_size;
    for (const int node : chosen) left[node] -= even;
    if (std::ranges::any_of(chosen, [&](int node) { return left[node] < 0; })) return;
    const auto keep = [&](const std::map<int, int>& after, const Ids& givers) {
      const bool better =
          one_socket == best.one_socket ? imbalance(after) < best.balance : one_socket;
      if (!better) return;
      best = {chosen, even, one_socket, imbalance(after)};
      best.split.insert(best.split.end(), givers.begin(), givers.end());
    };
    if (rest == 0) return keep(left, {});
    Ids open;
    for (const int node : chosen) {
      if (left[node] >= request_.group_size) open.push_back(node);
    }
    for (int size = static_cast<int>(open.size()); size > 0; --size) {
      subsets(open, size, [&](const Ids& givers) { try_rest(givers, rest, left, keep); });
    }
  }

  void try_rest(const Ids& givers, int rest, std::map<int, int> left,
                const std::function<void(const std::map<int, int>&, const Ids&)>& keep) const {
    Ids given;
    for (bool any = true; rest > 0 && any;) {
      any = false;
      for (const int node : givers) {
        if (rest == 0 || left[node] < request_.group_size) continue;
        left[node] -= request_.group_size;
        given.push_back(node);
        any = true;
        --rest;
      }
    }
    if (rest == 0) keep(left, given);
  }

  void deal(const Best& best, int count) {
    for (std::size_t i = 0; i < best.split.size(); ++i) {
      const int cpus = i < static_cast<std::size_t>(count) ? best.even : request_.group_size;
      take(Taker(topology_, {part(free_, &Cpu::numa, best.split[i]), cpus, {}, 1}).packed());
    }
  }

  const Topology& topology_;
  const SlowRequest& request_;
  CpuSet free_, taken_;
  int needed_;
  bool nodes_outside_ = false;
};

/// A core's id is its lowest online CPU.
Topology with_kubelets_cores(const Topology& topology) {
  std::vector<Cpu> cpus = topology.cpus();
  for (Cpu& cpu : cpus) {
    if (cpu.online) cpu.core = topology.siblings(cpu.cpu).first();
  }
  std::erase_if(cpus, [](const Cpu& cpu) { return !cpu.online; });
  return Topology::make(std::move(cpus)).value();
}

}  // namespace

CpuSet take_slowly(const Topology& machine, const SlowRequest& request) {
  const Topology topology = with_kubelets_cores(machine);
  Taker taker(topology, request);
  return request.options.has(CpuOption::kDistributeAcrossNuma) ? taker.distributed()
                                                               : taker.packed();
}

}  // namespace ka::test
