// SPDX-License-Identifier: Apache-2.0
// `selftest`: proves on this node, with pods of its own, that isolation works.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const SelftestOptions& options, Output& output);

}  // namespace ka::cli
