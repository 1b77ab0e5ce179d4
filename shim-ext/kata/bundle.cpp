// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/bundle.hpp"

#include <boost/json/value.hpp>

#include "base/files.hpp"
#include "base/json/json.hpp"

namespace ka::kata {
namespace {

namespace json = boost::json;

// Of a pod with a thousand mounts; containerd's own are a few tens of kilobytes.
constexpr std::size_t kLargest = std::size_t{4} << 20;

std::string text(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  const json::string* string = found == nullptr ? nullptr : found->if_string();
  return string == nullptr ? std::string() : std::string(*string);
}

void read_annotations(const json::object& annotations, Bundle& bundle) {
  bundle.is_container = text(annotations, "io.kubernetes.cri.container-type") == "container";
  bundle.pod_uid = text(annotations, "io.kubernetes.cri.sandbox-uid");
  const std::string space = text(annotations, "io.kubernetes.cri.sandbox-namespace");
  bundle.pod_name = text(annotations, "io.kubernetes.cri.sandbox-name");
  if (!space.empty()) bundle.pod_name = space + '/' + bundle.pod_name;
}

}  // namespace

base::Result<void> read_bundle(Bundle& bundle) {
  const auto file = bundle.directory / "config.json";
  const auto content = base::read_file(file, kLargest);
  if (!content) return unexpected(content.error());
  const auto document = base::parse_json(*content, file.string());
  if (!document) return unexpected(document.error());
  const json::object* object = document->if_object();
  const json::value* annotations = object == nullptr ? nullptr : object->if_contains("annotations");
  if (annotations != nullptr && annotations->is_object()) {
    read_annotations(annotations->get_object(), bundle);
  }
  return {};
}

}  // namespace ka::kata
