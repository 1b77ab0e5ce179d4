// SPDX-License-Identifier: Apache-2.0
// The command line of `kubectl affinity`, parsed.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "affinity/cli/terminal/output.hpp"
#include "policy/facts/expected.hpp"

namespace ka::cli::kubectl {

struct PluginOptions {
  std::string command;     ///< "status", "verify", "explain", "map", "noise"
  std::string target;      ///< a pod or a node; empty with `all`
  bool all = false;        ///< every node, one line each
  bool strict = false;     ///< verify: degraded is a failure as well
  std::optional<int> cpu;  ///< explain: whose that CPU of the target's node is
  bool json = false;
  std::string pod_namespace;                       ///< of the pod; empty: kubectl's own
  std::string reader_namespace = "kata-affinity";  ///< where the chart is installed
  std::string kubeconfig, context;                 ///< for kubectl; empty: its own
};

/// Like parse() of kata-affinityctl.
Expected<PluginOptions, Exit> parse_plugin(int argc, const char* const* argv, std::ostream& out,
                                           std::ostream& err);

}  // namespace ka::cli::kubectl
