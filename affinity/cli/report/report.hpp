// SPDX-License-Identifier: Apache-2.0
// `report`: the node as one page, to read later or elsewhere.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

/// Exits with kDone whatever the verdict is: `verify` judges.
Exit run(const ReportOptions& options, Output& output);

}  // namespace ka::cli
