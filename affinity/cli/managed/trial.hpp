// SPDX-License-Identifier: Apache-2.0
// `plan --pod` and `plan --managed`: what would become of a pod, and of a node.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

/// Asks the daemon on `socket` about the pod whose manifest is in `file` ("-": standard input). A
/// pod of which a container would not have its class is a "no".
Exit plan_pod(const std::string& socket, const std::string& file, Output& output);

/// Asks it what mode = "managed" would make of the node.
Exit plan_takeover(const std::string& socket, Output& output);

/// The answer of GET /v1/takeover.
std::string describe_takeover(const boost::json::value& trial);
/// The answer of POST /v1/trials.
std::string describe_trial(const boost::json::value& trial);

}  // namespace ka::cli
