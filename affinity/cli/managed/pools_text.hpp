// SPDX-License-Identifier: Apache-2.0
// GET /v1/pools as text.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace ka::cli {

/// The pools, the CPUs that are free, and who has what.
std::string describe_pools(const boost::json::value& pools);

/// A line for each of `containers`, by pod and name, and why it has not the class asked for.
std::string describe_allocations(const boost::json::array& containers);

}  // namespace ka::cli
