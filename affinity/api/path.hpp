// What a request's target names.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/base/result.hpp"

namespace ka::api {

struct Path {
  std::vector<std::string> parts;            ///< "/v1/node" is {"v1", "node"}; percent-decoded
  std::map<std::string, std::string> query;  ///< "?id=a"; percent-decoded
};

/// kInvalid: no leading slash, an empty part, a malformed percent code, a query key twice.
base::Result<Path> parse_target(std::string_view target);

/// Ids of sandboxes and containers: 1 to 128 of [A-Za-z0-9_.-], as containerd and CRI-O give them,
/// and not "." or "..".
bool is_id(std::string_view text);

}  // namespace ka::api
