// SPDX-License-Identifier: Apache-2.0
// What a request's target names.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ka::api {

struct Path {
  std::vector<std::string> parts;            ///< "/v1/node" is {"v1", "node"}; percent-decoded
  std::map<std::string, std::string> query;  ///< "?id=a"; percent-decoded
};

/// kInvalid: no leading slash, an empty part, a malformed percent code, a query key twice.
base::Result<Path> parse_target(std::string_view target);

}  // namespace ka::api
