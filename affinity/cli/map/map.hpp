// SPDX-License-Identifier: Apache-2.0
// `map`: the node, in the terminal or as a picture.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const MapOptions& options, Output& output);

}  // namespace ka::cli
