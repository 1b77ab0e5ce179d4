// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/life.hpp"

#include <algorithm>

#include "policy/allocate/fitting.hpp"
#include "policy/allocate/node_sets.hpp"

namespace ka::policy::allocate {
namespace {

/// The fewest groups of a level that would hold this many CPUs if all were free.
int fewest(const Machine& machine, CpuLevel level, int cpus) {
  std::vector<std::int64_t> sizes;
  for (const CpuGroup& group : machine.groups(level)) sizes.push_back(group.size);
  return least_groups(std::move(sizes), cpus);
}

}  // namespace

Expected<std::map<std::string, CpuSet>, Refusal> Life::add(
    const std::string& pod, std::span<const PodContainer> containers) {
  ++toll_.pods;
  const CpuSet free = books_.shared_pool();
  if (const auto moved = books_.add_pod(pod, containers); !moved) {
    ++toll_.refused;
    return unexpected(moved.error());
  }
  std::map<std::string, CpuSet> got;
  for (const PodContainer& container : containers) {
    const Holding& holding = books_.all().at(pod + '/' + container.name);
    got[container.name] = holding.cpus;
    count(free, holding);
  }
  if (inits_ == InitCpus::kFreed) static_cast<void>(books_.end_inits(pod));
  return got;
}

void Life::count(const CpuSet& free, const Holding& holding) {
  if (holding.request.use != CpuUse::kExclusive || holding.cpus.empty()) return;
  const Spread spread = spread_of(*machine_, free, holding.cpus);
  const int cpus = holding.cpus.size();
  ++toll_.containers;
  if (spread.nodes > fewest(*machine_, CpuLevel::kNode, cpus)) ++toll_.split_nodes;
  if (spread.sockets > fewest(*machine_, CpuLevel::kSocket, cpus)) ++toll_.split_sockets;
  if (spread.l3s > fewest(*machine_, CpuLevel::kL3, cpus)) ++toll_.split_l3s;
  if (spread.broken_cores > 0) ++toll_.split_cores;
}

bool Life::remove(const std::string& pod) { return books_.remove_pod(pod).has_value(); }

Expected<CpuSet, Refusal> Life::resize(const std::string& pod, const std::string& container,
                                       int cpus) {
  const std::string id = pod + '/' + container;
  if (const auto moved = books_.resize(id, cpus); !moved) {
    ++toll_.refused;
    return unexpected(moved.error());
  }
  return books_.cpus_of(id);
}

std::optional<std::string> Life::restart() { return books_.restore(books_.all()); }

double Life::broken() const {
  const CpuSet free = books_.shared_pool();
  if (free.empty()) return 0;
  return 1.0 - static_cast<double>(machine_->whole_cores_in(free).size()) / free.size();
}

}  // namespace ka::policy::allocate
