// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/assign.hpp"

#include <algorithm>

namespace ka::policy::plan {
namespace {

using Holdings = std::vector<OwnedSet>;
using Chosen = std::vector<OwnedSet*>;

/// Splits the holdings so far along the CPUs of one more container.
void add_owner(Holdings& holdings, std::size_t owner, CpuSet cpus) {
  const std::size_t before = holdings.size();
  for (std::size_t i = 0; i < before && !cpus.empty(); ++i) {
    CpuSet common = holdings[i].cpus & cpus;
    if (common.empty()) continue;
    cpus -= common;
    if (common != holdings[i].cpus) {
      OwnedSet rest = holdings[i];
      rest.cpus -= common;
      holdings.push_back(std::move(rest));
      holdings[i].cpus = std::move(common);
    }
    holdings[i].owners.push_back(owner);
  }
  if (!cpus.empty()) holdings.push_back({{owner}, std::move(cpus), {}, 0});
}

bool leaves_everyone_a_cpu(const SandboxFacts& sandbox, const CpuSet& usable, const CpuSet& core) {
  return std::ranges::all_of(sandbox.containers, [&](const ContainerFacts& container) {
    if (!owns_cpus(container)) return true;
    const CpuSet own = container.cpus & usable;
    return own.empty() || !own.subset_of(core);
  });
}

CpuSet core_to_set_aside(const Topology& topology, const SandboxFacts& sandbox,
                         const CpuSet& usable) {
  for (const int cpu : usable) {
    CpuSet core = topology.siblings(cpu) & usable;
    if (core.first() == cpu && leaves_everyone_a_cpu(sandbox, usable, core)) return core;
  }
  return {};
}

CpuSet usable_owned(const SandboxFacts& sandbox, const Bounds& bounds) {
  CpuSet owned;
  for (const ContainerFacts& container : sandbox.containers) {
    if (owns_cpus(container)) owned |= container.cpus;
  }
  return owned & bounds.permitted;
}

Holdings make_holdings(const SandboxFacts& sandbox, const CpuSet& usable, const CpuSet& set_aside) {
  Holdings holdings;
  for (std::size_t i = 0; i < sandbox.containers.size(); ++i) {
    const ContainerFacts& container = sandbox.containers[i];
    if (owns_cpus(container)) add_owner(holdings, i, container.cpus - set_aside);
  }
  for (OwnedSet& holding : holdings) holding.usable = holding.cpus & usable;
  std::ranges::sort(holdings, [](const OwnedSet& a, const OwnedSet& b) {
    return a.owners.front() != b.owners.front() ? a.owners.front() < b.owners.front()
                                                : a.cpus.first() < b.cpus.first();
  });
  return holdings;
}

int total_size(const Chosen& holdings) {
  int total = 0;
  for (const OwnedSet* holding : holdings) total += holding->usable.size();
  return total;
}

/// Gives one each to those whose proportion is below one, and takes them off the list.
bool deal_to_the_smallest(Chosen& open, int& vcpus) {
  const int weight = total_size(open);
  const int dealt = vcpus;
  const auto small = [&](OwnedSet* holding) {
    if (dealt * holding->usable.size() >= weight) return false;
    holding->vcpus = 1;
    --vcpus;
    return true;
  };
  return std::erase_if(open, small) > 0;
}

/// The method of largest remainders with at least one each; ties go to the first.
/// Precondition: as many vCPUs as holdings or more, no more than their CPUs.
void deal_in_proportion(Chosen open, int vcpus) {
  while (deal_to_the_smallest(open, vcpus)) {
  }
  const int weight = total_size(open);
  int rest = vcpus;
  for (OwnedSet* holding : open) {
    holding->vcpus = vcpus * holding->usable.size() / weight;
    rest -= holding->vcpus;
  }
  std::ranges::stable_sort(open, std::greater{}, [&](const OwnedSet* holding) {
    return vcpus * holding->usable.size() % weight;
  });
  for (int i = 0; i < rest; ++i) ++open[static_cast<std::size_t>(i)]->vcpus;
}

/// More vCPUs than CPUs. A holding that lost CPUs still gets as many vCPUs as it has nominally,
/// as long as one stays free to float.
void deal_to_all(const Chosen& open, int vcpus) {
  int spare = vcpus - total_size(open) - 1;
  for (OwnedSet* holding : open) {
    const int usable = holding->usable.size();
    const int extra = std::min(spare, holding->cpus.size() - usable);
    holding->vcpus = usable + extra;
    spare -= extra;
  }
}

bool served(const Chosen& open, std::size_t owner) {
  return std::ranges::any_of(open, [&](const OwnedSet* holding) {
    return holding->vcpus > 0 && std::ranges::count(holding->owners, owner) > 0;
  });
}

std::vector<std::size_t> owners_of(const Chosen& open) {
  std::vector<std::size_t> owners;
  for (const OwnedSet* holding : open) {
    owners.insert(owners.end(), holding->owners.begin(), holding->owners.end());
  }
  std::ranges::sort(owners);
  owners.erase(std::ranges::unique(owners).begin(), owners.end());
  return owners;
}

/// Fewer vCPUs than holdings: first one for each container, where it has most CPUs, then one for
/// each holding.
void deal_one_each(const Chosen& open, int vcpus) {
  for (const std::size_t owner : owners_of(open)) {
    if (vcpus == 0) return;
    if (served(open, owner)) continue;
    const auto largest = std::ranges::max_element(open, {}, [&](const OwnedSet* holding) {
      return std::ranges::count(holding->owners, owner) > 0 ? holding->usable.size() : 0;
    });
    (*largest)->vcpus = 1;
    --vcpus;
  }
  for (OwnedSet* holding : open) {
    if (vcpus == 0) return;
    if (holding->vcpus > 0) continue;
    holding->vcpus = 1;
    --vcpus;
  }
}

/// Lets the containers without a vCPU share that of the lowest CPU, on the union of their CPUs.
/// Answers who shares it.
std::vector<std::size_t> share_the_lowest(const Chosen& open) {
  std::vector<std::size_t> left = owners_of(open);
  std::erase_if(left, [&](std::size_t owner) { return served(open, owner); });
  OwnedSet* lowest = nullptr;
  for (OwnedSet* holding : open) {
    if (holding->vcpus == 0) continue;
    if (lowest == nullptr || holding->usable.first() < lowest->usable.first()) lowest = holding;
  }
  if (lowest == nullptr) return {};
  for (const std::size_t owner : left) {
    for (const OwnedSet* holding : open) {
      if (holding == lowest || std::ranges::count(holding->owners, owner) == 0) continue;
      lowest->cpus |= holding->cpus;
      lowest->usable |= holding->usable;
    }
    lowest->owners.push_back(owner);
  }
  std::ranges::sort(lowest->owners);
  return left.empty() ? left : lowest->owners;
}

}  // namespace

Assignment assign(const Topology& topology, const SandboxFacts& sandbox, const Bounds& bounds,
                  bool isolate) {
  Assignment result;
  CpuSet usable = usable_owned(sandbox, bounds);
  if (isolate) result.set_aside = core_to_set_aside(topology, sandbox, usable);
  usable -= result.set_aside;
  result.holdings = make_holdings(sandbox, usable, result.set_aside);
  Chosen open;
  for (OwnedSet& holding : result.holdings) {
    if (!holding.usable.empty()) open.push_back(&holding);
  }
  const int vcpus = static_cast<int>(sandbox.vcpus.size());
  if (vcpus > usable.size()) {
    deal_to_all(open, vcpus);
  } else if (vcpus >= static_cast<int>(open.size())) {
    deal_in_proportion(open, vcpus);
  } else {
    deal_one_each(open, vcpus);
    result.sharing = share_the_lowest(open);
  }
  result.floating = vcpus;
  for (const OwnedSet& holding : result.holdings) {
    result.floating -= holding.vcpus;
    if (holding.dedicated()) result.dedicated |= holding.usable;
  }
  return result;
}

}  // namespace ka::policy::plan
