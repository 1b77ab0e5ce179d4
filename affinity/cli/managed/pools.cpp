// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/managed/managed.hpp"
#include "affinity/cli/managed/pools_text.hpp"
#include "affinity/cli/managed/target.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

base::Result<json::object> put_class(const Daemon& daemon, const Target& target,
                                     const std::string& use) {
  json::object body{{"class", use}};
  if (target.container) body["container"] = *target.container;
  return daemon.put("/v1/classes/" + encode(target.pod), body);
}

/// What the containers that were meant have now.
json::array containers_meant(const json::value& pools, const Target& target) {
  json::array containers;
  for (const json::value& container : array_of(pools, "containers")) {
    if (is_meant(target, container)) containers.push_back(container);
  }
  return containers;
}

}  // namespace

Exit run(const PoolsOptions& options, Output& output) {
  const auto pools = Daemon(options.socket).get("/v1/pools");
  if (!pools) return output.fail(pools.error());
  output.show(*pools, [&pools] { return describe_pools(*pools); });
  return Exit::kDone;
}

Exit run(const ClassOptions& options, Output& output) {
  const Daemon daemon(options.socket);
  const auto before = daemon.get("/v1/pools");
  if (!before) return output.fail(before.error());
  const auto target = find_target(*before, options.target);
  if (!target) return output.fail(target.error());
  const auto after = put_class(daemon, *target, options.use);
  if (!after) {
    const Exit failed = output.fail(after.error());
    return after.error().code == base::ErrorCode::kConflict ? Exit::kNo : failed;
  }
  const json::value document{{"containers", containers_meant(*after, *target)}};
  output.show(document, [&] { return describe_allocations(array_of(document, "containers")); });
  return Exit::kDone;
}

}  // namespace ka::cli
