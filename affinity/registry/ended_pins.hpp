// SPDX-License-Identifier: Apache-2.0
// Manual pins end by themselves, after the time for which they were set.
#pragma once

#include <vector>

#include "base/clock.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::registry {

/// The events that withdraw those pins of a pod which have ended by `now`.
std::vector<policy::ledger::Event> ended_pins(const policy::ledger::PodRecord& pod,
                                              base::Clock::Time now);

}  // namespace ka::registry
