// SPDX-License-Identifier: Apache-2.0
// What a change did.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "affinity/cli/terminal/output.hpp"
#include "base/result.hpp"

namespace ka::cli {

/// "1 sandbox planned, 3 threads moved", and the warnings.
std::string describe_outcome(const boost::json::value& outcome);

/// Shows what a change did; threads that could not be placed are a "no".
Exit show_outcome(const base::Result<boost::json::object>& answer, Output& output);

}  // namespace ka::cli
