// SPDX-License-Identifier: Apache-2.0
// `kubectl affinity`: kata-affinityctl under another name. It runs the commands that read, each in
// an unprivileged pod of the node that it is about, by `kubectl exec`.
#pragma once

#include "affinity/cli/kubectl/plugin_options.hpp"
#include "affinity/cli/terminal/output.hpp"

namespace ka::cli::kubectl {

/// Whether the program was called by the name that kubectl looks for.
bool is_plugin(const char* program);

/// The program's exit status: that of the command in the pod, or an Exit.
int run_plugin(const PluginOptions& options, Output& output);

}  // namespace ka::cli::kubectl
