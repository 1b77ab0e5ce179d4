// SPDX-License-Identifier: Apache-2.0
// The pods in which commands run, and what a command is about. Without kubectl.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "affinity/cli/kubectl/plugin_options.hpp"
#include "base/result.hpp"

namespace ka::cli::kubectl {

/// An unprivileged pod of a node that reaches the daemon's read socket.
struct Reader {
  std::string node, pod;
  std::string phase;  ///< "Running"

  bool operator==(const Reader&) const = default;
};

/// Prints a line for each pod, as parse_readers() reads it.
inline constexpr const char* kReaderColumns =
    R"(-o=jsonpath={range .items[*]}{.spec.nodeName}{"\t"}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end})";
inline constexpr const char* kReaderLabels =
    "--selector=app.kubernetes.io/name=kata-affinity,app.kubernetes.io/component=reader";

/// By node. Pods without a node are left out.
std::vector<Reader> parse_readers(std::string_view lines);

/// What TARGET names, as far as it says.
struct Target {
  enum class Kind { kAny, kNode, kPod } kind = Kind::kAny;
  std::string name;
  std::string pod_namespace;  ///< of NAMESPACE/POD
};

/// "worker-3", "node/worker-3", "pod/cart-0", "shop/cart-0". kInvalid: it is no name.
base::Result<Target> parse_target(const std::string& text);

/// The command line that runs in a reader. `pod`: NAMESPACE/NAME; empty: about the node.
std::vector<std::string> command_in_reader(const PluginOptions& options, const std::string& pod);

}  // namespace ka::cli::kubectl
