// SPDX-License-Identifier: Apache-2.0
// What policy/plan/isolation.hpp judges: the masks that were read last.
#pragma once

#include <vector>

#include "affinity/engine/views.hpp"
#include "policy/plan/invariants.hpp"

namespace ka::engine {

/// The threads of a sandbox with the masks that were read last.
std::vector<policy::plan::ActualThread> actual_threads(const std::vector<ThreadView>& threads);

}  // namespace ka::engine
