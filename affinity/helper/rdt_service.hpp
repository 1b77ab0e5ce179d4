// SPDX-License-Identifier: Apache-2.0
// The verb /v1/resctrl: POST {"groups": [{"class": "gold", "schemata": {"l3": "50%"}, "tasks":
// [{"pid": 1, "tid": 2, "start_time": 3}]}]}.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/helper/rdt_keeper.hpp"
#include "affinity/helper/verb.hpp"
#include "base/result.hpp"

namespace ka::helper {

/// More are rejected. No hardware has as many groups.
inline constexpr std::size_t kMostRdtGroups = 64;
/// Of all groups together.
inline constexpr std::size_t kMostRdtTasks = 4096;

/// The groups of a request. kInvalid, with the path of what is wrong.
base::Result<std::vector<RdtGroup>> read_groups(std::string_view body);
/// The document of the verb.
std::string to_text(const RdtState& state);

inline constexpr std::string_view kRdtPath = "/v1/resctrl";
/// `keeper` must outlive it.
Verb rdt_verb(RdtKeeper& keeper);

}  // namespace ka::helper
