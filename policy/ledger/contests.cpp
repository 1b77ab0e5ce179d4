// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/contests.hpp"

#include <map>
#include <set>
#include <utility>

namespace ka::policy::ledger {
namespace {

const std::string& first_known(const std::string& preferred, const std::string& other) {
  return preferred.empty() ? other : preferred;
}

/// Who owns which of some CPUs.
class ByCpu {
 public:
  explicit ByCpu(const CpuSet& cpus) : cpus_(cpus) {}

  void add(const Contender& contender, const CpuSet& owned) {
    for (const int cpu : owned& cpus_) contenders_[cpu].insert(contender);
  }

  std::vector<Contest> contests() const {
    std::map<std::set<Contender>, CpuSet> cpus;
    for (const auto& [cpu, contenders] : contenders_) cpus[contenders].add(cpu);
    std::vector<Contest> list;
    for (const auto& [contenders, contested] : cpus) {
      list.push_back({contested, {contenders.begin(), contenders.end()}});
    }
    return list;
  }

 private:
  const CpuSet& cpus_;
  std::map<int, std::set<Contender>> contenders_;
};

void add_containers(const Ledger& ledger, ByCpu& cpus) {
  for (const auto& [id, pod] : ledger.pods()) {
    const std::string& name = first_known(pod.pod_name, first_known(pod.pod_uid, id));
    for (const auto& [container_id, container] : pod.containers) {
      if (!container.facts.exclusive) continue;
      cpus.add({id, name, first_known(container.facts.name, container_id), pod.vmm.has_value()},
               container.facts.cpus);
    }
  }
}

}  // namespace

std::vector<Contest> contests_of(const Ledger& ledger) {
  if (ledger.contested().empty()) return {};
  ByCpu cpus(ledger.contested());
  add_containers(ledger, cpus);
  for (const Claim& claim : ledger.unreported_claims()) {
    cpus.add({{}, first_known(claim.pod_uid, claim.container), claim.container}, claim.cpus);
  }
  return cpus.contests();
}

}  // namespace ka::policy::ledger
