// SPDX-License-Identifier: Apache-2.0
// `topology`: a machine.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const TopologyOptions& options, Output& output);

}  // namespace ka::cli
