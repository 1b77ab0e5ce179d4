// SPDX-License-Identifier: Apache-2.0
// Every node of a cluster, one line each: made of the responses of their daemons.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

namespace ka::cli::kubectl {

struct NodeLine {
  std::string node;
  std::string problem;  ///< why it could not be read; then there is nothing else
  std::string verdict, version;
  long long pods = 0;      ///< sandboxes
  long long isolated = 0;  ///< with exclusive containers, and all of those isolated
  long long degraded = 0;  ///< with a finding of that severity, and none that is worse
  long long violated = 0;
};

/// `list`: GET /v1/sandboxes; `report`: POST /v1/verify. Leniently: the daemon may be older or
/// newer.
NodeLine summarise(std::string node, const boost::json::value& list,
                   const boost::json::value& report);

/// A table, and a line with the sums.
std::string describe_fleet(const std::vector<NodeLine>& nodes);
boost::json::object fleet_to_json(const std::vector<NodeLine>& nodes);

/// Whether the nodes are what `verify` takes for good; with `strict`, degraded is not.
bool is_good(const std::vector<NodeLine>& nodes, bool strict);

}  // namespace ka::cli::kubectl
