// SPDX-License-Identifier: Apache-2.0
// The node's features for Node Feature Discovery: lines `NAME=VALUE`, which it makes labels of. A
// label's value has no commas, so sets of CPUs are counted.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>

namespace ka::cli {

/// `node` is GET /v1/node, `pools` is GET /v1/pools; absent: the mode is not "managed".
boost::json::object make_features(const boost::json::object& node,
                                  const std::optional<boost::json::object>& pools);

/// As NFD's feature files have it (source/local of nfd-worker). `expires`: NFD passes the lines
/// over from then on.
std::string describe_features(
    const boost::json::object& features,
    std::optional<std::chrono::system_clock::time_point> expires = std::nullopt);

}  // namespace ka::cli
