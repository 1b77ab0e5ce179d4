// SPDX-License-Identifier: Apache-2.0
// `plan --pod`: what would become of a pod where the daemon gives out the CPUs.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "affinity/cli/terminal/output.hpp"

namespace ka::cli {

/// Asks the daemon on `socket` about the pod whose manifest is in `file` ("-": standard input). A
/// pod of which a container would not have its class is a "no".
Exit plan_pod(const std::string& socket, const std::string& file, Output& output);

/// The answer of POST /v1/trials.
std::string describe_trial(const boost::json::value& trial);

}  // namespace ka::cli
