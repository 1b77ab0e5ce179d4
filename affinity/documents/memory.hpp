// SPDX-License-Identifier: Apache-2.0
// The JSON form of where a VM's memory lies and should lie.
#pragma once

#include <boost/json/object.hpp>

#include "policy/facts/memory.hpp"
#include "policy/plan/memory.hpp"

namespace ka::documents {

/// {"nodes":[{"node":0,"bytes":N,"bound":N}], "wanted":"0", "verdict":"in-place", "misplaced":N,
/// "device":""}
boost::json::object to_json(const policy::MemoryFacts& facts, const policy::plan::MemoryPlan& plan);

}  // namespace ka::documents
