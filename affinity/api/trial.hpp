// SPDX-License-Identifier: Apache-2.0
// mode = "managed": a pod that a client wants tried, and what would become of it.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/managed/trial.hpp"

namespace ka::api {

/// {"pod_name":"shop/cart", "guaranteed":true, "containers":[{"name":"app", "class":"exclusive",
/// "init":false, "quota":200000, "period":100000, "memory":BYTES, "huge_pages":[{"page":BYTES,
/// "bytes":BYTES}]}]}. kInvalid says what is wrong. What the nodes have left is not filled in.
base::Result<std::vector<policy::managed::TrialContainer>> read_trial(std::string_view body);

/// {"fits", "refused", "containers":[…], "moves":[…]}: containers as in GET /v1/pools, those that
/// would move with "from" and "to".
boost::json::object to_json(const policy::managed::Trial& trial);

}  // namespace ka::api
