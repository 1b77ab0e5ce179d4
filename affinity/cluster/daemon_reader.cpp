// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/daemon_reader.hpp"

#include <utility>

#include "base/http/client.hpp"

namespace ka::cluster {

using base::Result;

constexpr int kSuccess = 200;

Result<std::string> DaemonReader::request(const std::string& method,
                                          const std::string& target) const {
  auto response = http::call(socket_, {method, target, {}});
  if (!response) return unexpected(response.error());
  if (response->status == kSuccess) return std::move(response->body);
  return base::fail(base::ErrorCode::kUnavailable,
                    target + ": the daemon responds " + std::to_string(response->status));
}

Result<DaemonView> DaemonReader::view() const {
  if (auto ready = request("GET", "/readyz"); !ready) return unexpected(ready.error());
  const auto list = request("GET", "/v1/sandboxes");
  if (!list) return unexpected(list.error());
  const auto drifts = request("GET", "/v1/drifts");
  if (!drifts) return unexpected(drifts.error());
  auto sandboxes = read_sandboxes(*list);
  if (!sandboxes) return unexpected(sandboxes.error());
  auto seen = read_drifts(*drifts);
  if (!seen) return unexpected(seen.error());
  return DaemonView{std::move(*sandboxes), std::move(*seen)};
}

Result<NodeState> DaemonReader::verify() const {
  const auto node = request("GET", "/v1/node");
  if (!node) return unexpected(node.error());
  const auto report = request("POST", "/v1/verify");
  if (!report) return unexpected(report.error());
  return read_node(*node, *report);
}

}  // namespace ka::cluster
