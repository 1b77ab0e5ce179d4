// SPDX-License-Identifier: Apache-2.0
// Allocation without a daemon: allocate, hints, merge-hints, simulate.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const AllocateOptions& options, Output& output);
Exit run(const HintsOptions& options, Output& output);
Exit run(const MergeHintsOptions& options, Output& output);
Exit run(const SimulateOptions& options, Output& output);

}  // namespace ka::cli
