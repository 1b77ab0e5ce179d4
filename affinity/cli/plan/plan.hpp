// SPDX-License-Identifier: Apache-2.0
// `plan`: what the daemon would do.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const PlanOptions& options, Output& output);

}  // namespace ka::cli
