// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/resource_class.hpp"

namespace ka::policy {
namespace {

constexpr std::string_view kOfContainer = "/container.";
constexpr std::string_view kOfPod = "/pod";

}  // namespace

bool is_class_request(std::string_view annotation) {
  return std::ranges::any_of(kClassKinds, [annotation](const ClassKindInfo& info) {
    if (!annotation.starts_with(info.annotation)) return false;
    const std::string_view scope = annotation.substr(info.annotation.size());
    return scope.empty() || scope == kOfPod || scope.starts_with(kOfContainer);
  });
}

bool requests_classes(const Annotations& annotations) {
  return std::ranges::any_of(annotations,
                             [](const auto& entry) { return is_class_request(entry.first); });
}

std::optional<std::string> requested_class_of(const Annotations& annotations, ClassKind kind,
                                              std::string_view container) {
  const std::string key(info_of(kind).annotation);
  for (const std::string& scope :
       {std::string(kOfContainer) + std::string(container), std::string(kOfPod), std::string()}) {
    const auto found = annotations.find(key + scope);
    if (found != annotations.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace ka::policy
