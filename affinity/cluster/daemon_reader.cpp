// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/daemon_reader.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/http/client.hpp"

namespace ka::cluster {

using base::Result;

namespace {

constexpr int kSuccess = 200;
constexpr int kNotManaged = 409;
constexpr int kNotFound = 404;

base::Error refusal(const std::string& target, const http::Response& response) {
  const bool gone = response.status == kNotFound;
  return {gone ? base::ErrorCode::kNotFound : base::ErrorCode::kUnavailable,
          target + ": the daemon responds " + std::to_string(response.status), 0};
}

}  // namespace

Result<std::string> DaemonReader::request(const std::string& method,
                                          const std::string& target) const {
  auto response = http::call(socket_, {method, target, {}});
  if (!response) return unexpected(response.error());
  if (response->status == kSuccess) return std::move(response->body);
  return unexpected(refusal(target, *response));
}

Result<std::vector<ClassRequest>> DaemonReader::class_requests() const {
  const auto response = http::call(socket_, {"GET", "/v1/pools", {}});
  if (!response) return unexpected(response.error());
  if (response->status == kNotManaged) return std::vector<ClassRequest>{};
  if (response->status == kSuccess) return read_class_requests(response->body);
  return unexpected(refusal("/v1/pools", *response));
}

Result<void> DaemonReader::report(const ClassRequest& request) const {
  const std::string target = "/v1/class-requests/" + request.sandbox;
  boost::json::object body{{"container", request.container}};
  if (request.requested) body["class"] = *request.requested;
  const auto response = http::call(socket_, {"PUT", target, boost::json::serialize(body)});
  if (!response) return unexpected(response.error());
  if (response->status == kSuccess) return {};
  return unexpected(refusal(target, *response));
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
