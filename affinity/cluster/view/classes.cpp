// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/classes.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <utility>

#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/text.hpp"
#include "policy/managed/rules.hpp"

namespace ka::cluster {
namespace {

namespace json = boost::json;

std::optional<std::string> requested_by(const Pod& pod, const std::string& container) {
  for (const std::string& key : policy::managed::class_annotations(container)) {
    const auto found = pod.class_annotations.find(key);
    if (found != pod.class_annotations.end()) return found->second;
  }
  return std::nullopt;
}

ClassRequest read_request(const json::value& container) {
  ClassRequest request{base::text_at(container, "/pod"),
                       base::text_at(container, "/pod_uid"),
                       base::text_at(container, "/name"),
                       {}};
  if (base::find_at(container, "/requested") != nullptr) {
    request.requested = base::text_at(container, "/requested");
  }
  return request;
}

}  // namespace

base::Result<std::vector<ClassRequest>> read_class_requests(std::string_view pools) {
  const auto document = base::parse_json(pools, "pools");
  if (!document) return unexpected(document.error());
  if (base::find_at(*document, "/containers") == nullptr) {
    return base::fail(base::ErrorCode::kInvalid, "pools: no containers");
  }
  std::vector<ClassRequest> requests;
  for (const json::value& container : base::elements_at(*document, "/containers")) {
    ClassRequest request = read_request(container);
    if (base::is_id(request.sandbox)) requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<ClassRequest> changed_requests(const std::vector<ClassRequest>& known,
                                           const Pods& pods) {
  std::map<std::string_view, const Pod*> by_uid;
  for (const auto& [uid, pod] : pods.all()) by_uid[pod.node_uid] = &pod;
  std::vector<ClassRequest> changed;
  for (const ClassRequest& request : known) {
    const auto pod = by_uid.find(request.pod_uid);
    if (pod == by_uid.end()) continue;
    auto requested = requested_by(*pod->second, request.container);
    if (requested == request.requested) continue;
    changed.push_back(request);
    changed.back().requested = std::move(requested);
  }
  return changed;
}

}  // namespace ka::cluster
