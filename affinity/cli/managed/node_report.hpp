// SPDX-License-Identifier: Apache-2.0
// The node where kata-affinity gives out CPUs: pools, who has what, and checks of both.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace ka::cli {

/// {"passed":…, "checks":[{"check","passed","text"}], "pools":…, "verify":…} from GET /v1/pools and
/// POST /v1/verify.
boost::json::object make_node_report(const boost::json::object& pools,
                                     const boost::json::object& verify);

std::string describe_node_report(const boost::json::value& report);

}  // namespace ka::cli
