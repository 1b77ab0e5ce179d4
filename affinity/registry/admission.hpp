// SPDX-License-Identifier: Apache-2.0
// Limits for every event, whatever its source.
#pragma once

#include "base/result.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::registry {

/// kInvalid for an event with an id that is none (base::is_id), kConflict for one that would make a
/// sandbox or a container more than are followed (policy/facts/limits.hpp).
base::Result<void> admit(const policy::ledger::Event& event, const policy::ledger::Ledger& ledger);

}  // namespace ka::registry
