// SPDX-License-Identifier: Apache-2.0
// Commands that change the placement: reconcile, release, sandbox, container, and the pins.
#pragma once

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

Exit run(const ReconcileOptions& options, Output& output);
Exit run(const ReleaseOptions& options, Output& output);
Exit run(const SandboxAddOptions& options, Output& output);
Exit run(const SandboxRemoveOptions& options, Output& output);
Exit run(const ContainerUpdateOptions& options, Output& output);
Exit run(const ContainerRemoveOptions& options, Output& output);
Exit run(const PinOptions& options, Output& output);

}  // namespace ka::cli
