// SPDX-License-Identifier: Apache-2.0
// What the daemon reports: status, explain, verify, events, and measure, which has it ask a guest.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const StatusOptions& options, Output& output);
Exit run(const NamesOptions& options, Output& output);
Exit run(const ExplainOptions& options, Output& output);
Exit run(const VerifyOptions& options, Output& output);
Exit run(const EventsOptions& options, Output& output);
Exit run(const MeasureOptions& options, Output& output);

}  // namespace ka::cli
