// SPDX-License-Identifier: Apache-2.0
// noise: what runs on exclusive CPUs besides what they are for, by the kernel's tracepoints.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const NoiseOptions& options, Output& output);

}  // namespace ka::cli
