// SPDX-License-Identifier: Apache-2.0
// The verb /v1/power: POST {"cpus": [{"cpus": "2-3", "latency": "n/a", "governor": "performance"},
// ...]}. An empty value leaves it as it is.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/power.hpp"

namespace ka::helper {

/// The requests of a request. kInvalid, with the path of what is wrong: also a CPU that is there
/// twice, and values that the kernel's files do not have.
base::Result<policy::PowerRequests> read_power(std::string_view body);

/// {"problems": [{"cpu": 2, "latency": "", "governor": "..."}], "problem": ""}.
std::string power_text(const policy::PowerProblems& problems, const std::string& problem);

}  // namespace ka::helper
