// SPDX-License-Identifier: Apache-2.0
// What-if scenarios: the input of `kata-affinityctl plan`.
#pragma once

#include <boost/json/fwd.hpp>

#include "base/result.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/plan.hpp"
#include "policy/plan/settings.hpp"

namespace ka::documents {

struct Scenario {
  policy::plan::Snapshot snapshot;
  policy::plan::Settings settings;
};

/// Reads a scenario for a machine. Errors (kInvalid) name the path: an unknown key, a wrong type, a
/// malformed cpuset, CPUs or nodes that the machine does not have, a container's CPU that is
/// offline, an id twice. A container without "exclusive" is judged by its
/// quota, as everywhere else.
base::Result<Scenario> scenario_from_json(const boost::json::value& document,
                                          policy::Topology topology);

}  // namespace ka::documents
