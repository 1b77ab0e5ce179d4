// SPDX-License-Identifier: Apache-2.0
// Where a VM's memory lies and should lie.
#pragma once

#include <string>

#include "policy/facts/memory.hpp"
#include "policy/plan/memory.hpp"

namespace ka::messages {

/// "512 MiB on node 0, 3 MiB on node 1"
std::string memory_text(const policy::MemoryFacts& facts);

/// What becomes of it. `moves`: memory is moved, not only reported.
std::string sentence(const policy::plan::MemoryPlan& plan, bool moves);

}  // namespace ka::messages
