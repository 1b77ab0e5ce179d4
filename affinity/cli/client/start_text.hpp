// SPDX-License-Identifier: Apache-2.0
// What the daemon's start still waits for, as text.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace ka::cli {

/// Of GET /v1/sandboxes or /v1/node: what the daemon's start still waits for, and which state is
/// not on disk; empty where all is well.
std::string describe_start(const boost::json::value& document);

}  // namespace ka::cli
