// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/event.hpp"

#include <utility>

namespace ka::policy::ledger {

void merge(const ContainerSpec& spec, ContainerFacts& facts) {
  if (!spec.name.empty()) facts.name = spec.name;
  if (spec.cpus) facts.cpus = *spec.cpus;
  if (spec.mems) facts.mems = *spec.mems;
  if (spec.quota) facts.quota = *spec.quota;
  if (spec.period) facts.period = *spec.period;
  if (spec.shares) facts.shares = *spec.shares;
  if (spec.exited) facts.exited = *spec.exited;
}

CpuSet KubeletSeen::withheld(const CpuSet& online) const {
  if (!shared_pool || !claims) return {};
  CpuSet rest = online - *shared_pool;
  for (const Claim& claim : *claims) rest -= claim.cpus;
  return rest;
}

ContainerSeen whole_report(std::string sandbox, const ContainerFacts& facts,
                           std::optional<bool> exclusive) {
  ContainerSpec spec{.name = facts.name,
                     .cpus = facts.cpus,
                     .mems = facts.mems,
                     .quota = facts.quota,
                     .period = facts.period,
                     .shares = facts.shares,
                     .exited = facts.exited};
  return {.sandbox = std::move(sandbox),
          .id = facts.id,
          .spec = std::move(spec),
          .exclusive = exclusive,
          .before = {}};
}

}  // namespace ka::policy::ledger
