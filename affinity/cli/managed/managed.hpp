// SPDX-License-Identifier: Apache-2.0
// The commands of mode = "managed": pools, class, node-report, discover.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const PoolsOptions& options, Output& output);
/// A class that cannot be had is a "no".
Exit run(const ClassOptions& options, Output& output);
/// A check that failed is a "no".
Exit run(const NodeReportOptions& options, Output& output);

/// The features of the node, in any mode. A daemon that waits for its sources is a "no".
Exit run(const DiscoverOptions& options, Output& output);

}  // namespace ka::cli
