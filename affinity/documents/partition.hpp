// SPDX-License-Identifier: Apache-2.0
// A partition in requests to the helper, and in its records:
//
//     {"vmm": THREAD, "cpus": "2-3", "vcpus": [THREAD, ...], "priority": 0,
//      "full_power": false, "of_container": false, "unbalanced": false}
#pragma once

#include <boost/json/object.hpp>

#include "base/json/json.hpp"
#include "policy/facts/partition.hpp"

namespace ka::documents {

boost::json::object to_json(const policy::Partition& partition);
/// Reads the keys of such an object. An error for one without CPUs or vCPUs, with a thread that is
/// not the VMM's or is there twice, or with a priority above kMostPriority.
policy::Partition read_partition(base::Fields& fields, base::InputError& errors);

}  // namespace ka::documents
