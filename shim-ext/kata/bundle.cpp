// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/bundle.hpp"

#include <boost/json/value.hpp>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/json/lookup.hpp"

namespace ka::kata {
namespace {

namespace json = boost::json;

void read_annotations(const json::value& annotations, Bundle& bundle) {
  const auto text = [&](std::string_view key) {
    return base::text_in(base::member(annotations, key));
  };
  bundle.is_container = text("io.kubernetes.cri.container-type") == "container";
  bundle.pod_uid = text("io.kubernetes.cri.sandbox-uid");
  const std::string space = text("io.kubernetes.cri.sandbox-namespace");
  bundle.pod_name = text("io.kubernetes.cri.sandbox-name");
  if (!space.empty()) bundle.pod_name = space + '/' + bundle.pod_name;
}

}  // namespace

base::Result<void> read_bundle(Bundle& bundle) {
  const auto file = bundle.directory / "config.json";
  const auto content = base::read_regular_file(file, kLargestSpec);
  if (!content) return unexpected(content.error());
  const auto document = base::parse_json(*content, file.string());
  if (!document) return unexpected(document.error());
  const json::value& annotations = base::member(*document, "annotations");
  if (annotations.is_object()) read_annotations(annotations, bundle);
  return {};
}

}  // namespace ka::kata
