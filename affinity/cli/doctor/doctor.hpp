// SPDX-License-Identifier: Apache-2.0
// `doctor`: what on this node defeats isolation.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const DoctorOptions& options, Output& output);

}  // namespace ka::cli
