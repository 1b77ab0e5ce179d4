// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/ended_pins.hpp"

#include <chrono>
#include <utility>

namespace ka::registry {

using policy::ledger::OverrideSet;

std::vector<policy::ledger::Event> ended_pins(const policy::ledger::PodRecord& pod,
                                              base::Clock::Time now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch());
  std::vector<policy::ledger::Event> ended;
  for (const policy::ledger::Pin& pin : pod.overrides) {
    if (!pin.until || *pin.until > seconds.count()) continue;
    OverrideSet event{.sandbox = pod.id, .value = pin, .lasts_for = {}};
    event.value.cpus = {};
    ended.push_back({policy::ledger::Source::kApi, std::move(event)});
  }
  return ended;
}

}  // namespace ka::registry
