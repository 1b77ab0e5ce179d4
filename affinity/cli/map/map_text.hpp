// SPDX-License-Identifier: Apache-2.0
// The node in a terminal: cores in brackets, each CPU with the letter of its owner, and what the
// letters mean.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace ka::cli {

/// GET /v1/node.
std::string describe_node(const boost::json::value& node);

}  // namespace ka::cli
