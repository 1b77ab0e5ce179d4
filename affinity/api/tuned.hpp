// SPDX-License-Identifier: Apache-2.0
// What pods request of the CPUs of their containers, by CRI-O's annotations, as JSON.
#pragma once

#include <boost/json/fwd.hpp>

#include "affinity/line/node.hpp"

namespace ka::api {

/// A row for each container and annotation.
boost::json::array tuned_to_json(const line::Node& node);

}  // namespace ka::api
