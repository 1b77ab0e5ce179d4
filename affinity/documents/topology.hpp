// SPDX-License-Identifier: Apache-2.0
// The JSON form of a machine: {"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0,"l3":0,"kind":0,
// "isolated":false}, ...], "distances":[[10,21],[21,10]]}. Writing and reading back gives an equal
// Topology.
#pragma once

#include <boost/json/fwd.hpp>

#include "base/result.hpp"
#include "policy/facts/topology.hpp"

namespace ka::documents {

/// A CPU that is offline has "online":false. "nodes" names the rows of "distances" where they are
/// not the nodes of the CPUs in ascending order.
boost::json::object to_json(const policy::Topology& topology);

/// Required of a CPU: cpu, core, socket, numa; "l3" is that of the node where it is absent. Unknown
/// keys are errors.
base::Result<policy::Topology> topology_from_json(const boost::json::value& document);

}  // namespace ka::documents
