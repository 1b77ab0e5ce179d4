// SPDX-License-Identifier: Apache-2.0
// Where memory lies and is to lie, as JSON and as sentences.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "policy/facts/memory.hpp"
#include "policy/plan/memory.hpp"

namespace ka::words {

/// {"nodes":[{"node":0,"bytes":N,"bound":N}], "wanted":"0", "verdict":"in-place", "misplaced":N,
/// "device":""}
boost::json::object to_json(const policy::MemoryFacts& facts, const policy::plan::MemoryPlan& plan);

/// "512 MiB on node 0, 3 MiB on node 1"
std::string memory_text(const policy::MemoryFacts& facts);

/// What is to become of it. `moves`: memory is moved, else it is only looked at.
std::string sentence(const policy::plan::MemoryPlan& plan, bool moves);

}  // namespace ka::words
