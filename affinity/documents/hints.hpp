// SPDX-License-Identifier: Apache-2.0
// The JSON form of topology hints, as `kata-affinityctl merge-hints` reads and prints it.
#pragma once

#include <boost/json/fwd.hpp>

#include "base/result.hpp"
#include "policy/allocate/hints.hpp"

namespace ka::documents {

/// {"policy":"best-effort","numaNodes":[0,1],"options":[],"distances":[[10,21],[21,10]],
///  "providers":[{"cpu":[{"affinity":[0],"preferred":true}]}]}
///
/// With kubelet's meanings: a provider that is null or {} has no preference, nor has a resource
/// that is null; [] means that no node suits, an affinity of null any node. Options:
/// "prefer-closest-numa-nodes", "max-allowable-numa-nodes=N", and our "prefer-cpu-alignment".
base::Result<policy::allocate::HintProblem> hint_problem_from_json(
    const boost::json::value& document);

/// {"affinity":[0],"preferred":true}; affinity may be null.
boost::json::object to_json(const policy::allocate::Hint& hint);

/// {"affinity":[0],"preferred":true,"admit":true}; affinity may be null.
boost::json::object to_json(const policy::allocate::MergedHint& hint);

}  // namespace ka::documents
