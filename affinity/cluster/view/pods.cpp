// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/pods.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/cluster/view/object_name.hpp"
#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/text.hpp"
#include "policy/managed/rules.hpp"

namespace ka::cluster {
namespace json = boost::json;
namespace {

using base::ErrorCode;
using base::Result;

/// What kubelet puts on the pod that stands for one of its static pods: the uid of that.
constexpr std::string_view kMirrorOf = "/metadata/annotations/kubernetes.io~1config.mirror";
constexpr std::int64_t kHttpGone = 410;

Condition read_condition(const json::value& condition) {
  return {base::text_at(condition, "/status"), base::text_at(condition, "/reason"),
          base::text_at(condition, "/message")};
}

void read_conditions(const json::value& object, Pod& pod) {
  for (const json::value& condition : base::elements_at(object, "/status/conditions")) {
    if (base::text_at(condition, "/type") != kCondition) continue;
    pod.isolated = read_condition(condition);
    pod.transition = base::text_at(condition, "/lastTransitionTime");
  }
}

/// As the daemon has it of the runtime.
void read_class_annotations(const json::value& object, Pod& pod) {
  const json::value* annotations = base::find_at(object, "/metadata/annotations");
  if (annotations == nullptr || !annotations->is_object()) return;
  for (const auto& [key, value] : annotations->get_object()) {
    if (!policy::managed::is_class_annotation(key) || !value.is_string()) continue;
    pod.class_annotations[key] = base::printable(std::string_view(value.get_string()));
  }
}

/// 410 is what the API server calls a resource version that etcd no longer has.
base::Error watch_error(const json::value& status) {
  const bool gone = base::number_at(status, "/code") == kHttpGone;
  return {gone ? ErrorCode::kGone : ErrorCode::kUnavailable,
          "the watch ended: " + base::text_at(status, "/message"), 0};
}

void put(Pod pod, std::map<std::string, Pod>& pods) {
  std::string uid = pod.uid;
  pods.insert_or_assign(std::move(uid), std::move(pod));
}

}  // namespace

std::optional<Pod> read_pod(const json::value& object) {
  Pod pod{.uid = base::text_at(object, "/metadata/uid"),
          .node_uid = base::text_at(object, kMirrorOf),
          .name_space = base::text_at(object, "/metadata/namespace"),
          .name = base::text_at(object, "/metadata/name")};
  if (!base::is_id(pod.uid) || !base::is_id(pod.name_space)) return std::nullopt;
  if (!is_object_name(pod.name)) return std::nullopt;
  if (pod.node_uid.empty()) pod.node_uid = pod.uid;
  read_conditions(object, pod);
  read_class_annotations(object, pod);
  return pod;
}

Result<void> Pods::replace(std::string_view list) {
  const auto document = base::parse_json(list, "PodList");
  if (!document) return unexpected(document.error());
  std::string version = base::text_at(*document, "/metadata/resourceVersion");
  if (version.empty()) return base::fail(ErrorCode::kInvalid, "PodList: no resourceVersion");
  Map pods;
  for (const json::value& item : base::elements_at(*document, "/items")) {
    if (auto pod = read_pod(item)) put(*std::move(pod), pods);
  }
  pods_ = std::move(pods);
  version_ = std::move(version);
  return {};
}

Result<void> Pods::apply(std::string_view line) {
  const auto event = base::parse_json(line, "watch");
  if (!event) return unexpected(event.error());
  const std::string type = base::text_at(*event, "/type");
  const json::value* object = base::find_at(*event, "/object");
  if (type.empty() || object == nullptr) {
    return base::fail(ErrorCode::kInvalid, "watch: neither type nor object");
  }
  if (type == "ERROR") return unexpected(watch_error(*object));
  if (auto version = base::text_at(*object, "/metadata/resourceVersion"); !version.empty()) {
    version_ = std::move(version);
  }
  if (type == "BOOKMARK") return {};
  auto pod = read_pod(*object);
  if (!pod) return {};
  if (type == "DELETED") {
    pods_.erase(pod->uid);
  } else {
    put(*std::move(pod), pods_);
  }
  return {};
}

}  // namespace ka::cluster
