// SPDX-License-Identifier: Apache-2.0
// POD[/CONTAINER] among the containers of GET /v1/pools.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace ka::cli {

/// A pod, or one container of it.
struct Target {
  std::string pod;                       ///< the id of its sandbox
  std::optional<std::string> container;  ///< its name; absent: all of the pod

  bool operator==(const Target&) const = default;
};

/// Pods and containers resolve as in `resolve` (client/sandbox_name.hpp). What is a pod's name as a
/// whole is the pod: "shop/cart" is no container "cart" of a pod "shop".
base::Result<Target> find_target(const boost::json::value& pools, const std::string& given);

/// A container of GET /v1/pools that `target` means.
bool is_meant(const Target& target, const boost::json::value& container);

}  // namespace ka::cli
