// The commands: each takes its options, prints through Output, and says how the program ends.
#pragma once

#include "affinity/cli/options.hpp"
#include "affinity/cli/output.hpp"

namespace ka::cli {

Exit run(const TopologyOptions& options, Output& output);
Exit run(const PlanOptions& options, Output& output);

}  // namespace ka::cli
