// SPDX-License-Identifier: Apache-2.0
// The JSON form of the steps that led to a CPU allocation.
#pragma once

#include <boost/json/fwd.hpp>

#include "policy/allocate/allocate.hpp"

namespace ka::documents {

/// {"phase":"Filter","step":"reserved","what":"removed","cpus":"0","text":"..."}; absent: what the
/// finding does not say.
boost::json::object to_json(const policy::allocate::Finding& finding,
                            const policy::allocate::Machine& machine);

}  // namespace ka::documents
