// SPDX-License-Identifier: Apache-2.0
// `plan`: what a daemon would do, without one.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const PlanOptions& options, Output& output);

}  // namespace ka::cli
