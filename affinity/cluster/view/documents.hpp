// SPDX-License-Identifier: Apache-2.0
// Writes as requests to the API server (Kubernetes' core/v1).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/cluster/view/outbox.hpp"
#include "base/http/exchange.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"

namespace ka::cluster {

/// The node's label, and the key of its taint.
inline constexpr std::string_view kNodeKey = "kata-affinity.io/isolation";

using WallTime = std::chrono::system_clock::time_point;

struct ApiRequest {
  http::Request request;
  std::string content_type = "application/json";
};

/// GET of the node's pods: a list, or a watch of them from `version` on.
http::Request list_request(const std::string& node);
http::Request watch_request(const std::string& node, const std::string& version, int seconds);

/// The server refuses it for a pod that has the name of the one that was meant, and another uid.
ApiRequest condition_request(const ConditionWrite& write, WallTime now);
/// Named after the pod, the reason and the ten minutes in which it is: the server refuses another
/// one of these, also where this program has restarted meanwhile.
ApiRequest event_request(const EventWrite& write, const std::string& node, WallTime now);

/// The change of the node as it is (`object`) to one with the label of `state` (absent: without it)
/// and, while that is kBroken and `taints`, the taint. Absent: nothing is to be changed. The server
/// refuses the request (409) where the node has changed meanwhile: taints are replaced as a whole.
base::Result<std::optional<ApiRequest>> node_request(std::string_view object,
                                                     std::optional<NodeState> state, bool taints);
http::Request node_query(const std::string& node);

}  // namespace ka::cluster
