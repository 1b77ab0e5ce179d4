// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/documents.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <cstdio>

#include "affinity/cluster/view/object_name.hpp"
#include "base/iso_time.hpp"
#include "base/json/json.hpp"
#include "base/json/lookup.hpp"

namespace ka::cluster {
namespace json = boost::json;
namespace {

constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";
constexpr const char* kReporter = "kata-affinity-reporter";
constexpr std::string_view kLabelPath = "/metadata/labels/kata-affinity.io~1isolation";
/// An event's name is the pod's, cut to leave room, a dot and 16 digits.
constexpr std::size_t kNameRoom = 230;
/// Of Kubernetes' Event (validation of events.k8s.io/v1).
constexpr std::size_t kMostMessage = 1024;
/// Of Kubernetes' PodCondition there is no limit but the object's.
constexpr std::size_t kMostText = 4096;

std::string cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  text.resize(limit - 3);
  // Not in the middle of a character.
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0) text.pop_back();
  return text + "...";
}

/// FNV-1a: the same in every process, which std::hash does not promise.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 14695981039346656037U;
  for (const char letter : text)
    value = (value ^ static_cast<unsigned char>(letter)) * 1099511628211U;
  return value;
}

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(value));
  return digits.data();
}

std::string event_name(const EventWrite& write, WallTime now) {
  const auto window =
      std::chrono::floor<std::chrono::minutes>(now.time_since_epoch()) / Outbox::kBetweenEvents;
  std::string pod = write.pod.name.substr(0, kNameRoom);
  while (pod.ends_with('.') || pod.ends_with('-')) pod.pop_back();
  return pod + '.' +
         hexadecimal(hash(write.pod.uid + '/' + write.reason + '/' + std::to_string(window)));
}

std::string pods_of(const std::string& node) {
  return "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node;
}

json::object condition_of(const ConditionWrite& write, WallTime now) {
  const bool same = write.pod.isolated && write.pod.isolated->status == write.wanted->status;
  return {{"type", kCondition},
          {"status", write.wanted->status},
          {"reason", write.wanted->reason},
          {"message", cut(write.wanted->message, kMostText)},
          {"lastTransitionTime", same ? write.pod.transition : base::iso_time(now)}};
}

/// The node's taints without ours, and with it where there should be one.
json::array taints_with(const json::value& node, bool is_tainted) {
  json::array taints;
  for (const json::value& taint : base::elements_at(node, "/spec/taints")) {
    if (base::text_at(taint, "/key") != kNodeKey) taints.push_back(taint);
  }
  if (is_tainted) {
    taints.push_back(
        {{"key", kNodeKey}, {"value", state_name(NodeState::kBroken)}, {"effect", "NoSchedule"}});
  }
  return taints;
}

bool has_taint(const json::value& node) {
  return std::ranges::any_of(base::elements_at(node, "/spec/taints"), [](const json::value& taint) {
    return base::text_at(taint, "/key") == kNodeKey;
  });
}

}  // namespace

http::Request list_request(const std::string& node) { return {"GET", pods_of(node), {}}; }

http::Request watch_request(const std::string& node, const std::string& version, int seconds) {
  return {"GET",
          pods_of(node) + "&watch=true&allowWatchBookmarks=true&resourceVersion=" + version +
              "&timeoutSeconds=" + std::to_string(seconds),
          {}};
}

ApiRequest condition_request(const ConditionWrite& write, WallTime now) {
  const json::object condition = write.wanted
                                     ? condition_of(write, now)
                                     : json::object{{"type", kCondition}, {"$patch", "delete"}};
  const json::object patch{{"metadata", {{"uid", write.pod.uid}}},
                           {"status", {{"conditions", json::array{condition}}}}};
  return {{"PATCH",
           "/api/v1/namespaces/" + write.pod.name_space + "/pods/" + write.pod.name + "/status",
           json::serialize(patch)},
          kStrategicPatch};
}

ApiRequest event_request(const EventWrite& write, const std::string& node, WallTime now) {
  const std::string time = base::iso_time(now);
  const json::object event{
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"name", event_name(write, now)}, {"namespace", write.pod.name_space}}},
      {"involvedObject",
       {{"apiVersion", "v1"},
        {"kind", "Pod"},
        {"namespace", write.pod.name_space},
        {"name", write.pod.name},
        {"uid", write.pod.uid}}},
      {"type", write.is_warning ? "Warning" : "Normal"},
      {"reason", write.reason},
      {"message", cut(write.message, kMostMessage)},
      {"source", {{"component", kReporter}, {"host", node}}},
      {"reportingComponent", kReporter},
      {"reportingInstance", node},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"count", 1}};
  return {
      {"POST", "/api/v1/namespaces/" + write.pod.name_space + "/events", json::serialize(event)}};
}

http::Request node_query(const std::string& node) { return {"GET", "/api/v1/nodes/" + node, {}}; }

base::Result<std::optional<ApiRequest>> node_request(std::string_view object,
                                                     std::optional<NodeState> state, bool taints) {
  const auto node = base::parse_json(object, "Node");
  if (!node) return unexpected(node.error());
  const std::string name = base::text_at(*node, "/metadata/name");
  if (!is_object_name(name)) return base::fail(base::ErrorCode::kInvalid, "Node: it has no name");
  const std::string label = state ? std::string(state_name(*state)) : "";
  const bool is_tainted = taints && state == NodeState::kBroken;
  if (base::text_at(*node, kLabelPath) == label && has_taint(*node) == is_tainted)
    return std::nullopt;
  json::object metadata{{"resourceVersion", base::text_at(*node, "/metadata/resourceVersion")}};
  metadata["labels"] = {{kNodeKey, state ? json::value(label) : json::value(nullptr)}};
  json::object patch{{"metadata", std::move(metadata)}};
  if (has_taint(*node) != is_tainted) patch["spec"] = {{"taints", taints_with(*node, is_tainted)}};
  return ApiRequest{{"PATCH", "/api/v1/nodes/" + name, json::serialize(patch)}, kMergePatch};
}

}  // namespace ka::cluster
