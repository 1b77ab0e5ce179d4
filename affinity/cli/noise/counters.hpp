// SPDX-License-Identifier: Apache-2.0
// noise --counters: what the daemon has counted, without recording anything.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli::noise {

Exit show_counters(const NoiseOptions& options, Output& output);

/// The table; `document` has the member "interruptions" of GET /v1/node.
std::string describe_counters(const boost::json::value& document);

}  // namespace ka::cli::noise
