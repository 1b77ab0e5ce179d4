// SPDX-License-Identifier: Apache-2.0
// Events for tests of the ledger.
#pragma once

#include <string>
#include <utility>

#include "policy/ledger/event.hpp"

namespace ka::tests {

/// A container as an operator reports it.
inline policy::ledger::Event seen(const std::string& sandbox, const std::string& id,
                                  policy::CpuSet cpus, bool exclusive) {
  policy::ContainerFacts facts;
  facts.id = id;
  facts.cpus = std::move(cpus);
  return {policy::ledger::Source::kApi, policy::ledger::whole_report(sandbox, facts, exclusive)};
}

}  // namespace ka::tests
