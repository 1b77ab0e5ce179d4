// SPDX-License-Identifier: Apache-2.0
// The commands of mode = "managed": pools, class.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const PoolsOptions& options, Output& output);
/// A class that cannot be had is a "no".
Exit run(const ClassOptions& options, Output& output);

}  // namespace ka::cli
