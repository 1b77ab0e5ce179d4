// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/managed/manifest.hpp"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "base/json/lookup.hpp"
#include "policy/managed/rules.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::Result;

constexpr std::int64_t kThousand = 1000;
/// kubelet's CFS period in microseconds (QuotaPeriod in pkg/kubelet/cm/helpers_linux.go).
constexpr std::int64_t kPeriod = 100000;

constexpr std::array<std::pair<std::string_view, long double>, 14> kSuffixes{{
    {"", 1e3L},
    {"m", 1},
    {"k", 1e6L},
    {"M", 1e9L},
    {"G", 1e12L},
    {"T", 1e15L},
    {"P", 1e18L},
    {"Ki", 1e3L * 0x1p10L},
    {"Mi", 1e3L * 0x1p20L},
    {"Gi", 1e3L * 0x1p30L},
    {"Ti", 1e3L * 0x1p40L},
    {"Pi", 1e3L * 0x1p50L},
    {"u", 1e-3L},
    {"n", 1e-6L},
}};

base::Error no_quantity(const std::string& text) {
  return {ErrorCode::kInvalid, '"' + text + "\" is not a quantity", 0};
}

/// What `kind` (limits, requests) has of a container's resources.
const json::value& resources_of(const json::value& container, std::string_view kind) {
  return base::member(base::member(container, "resources"), kind);
}

/// A quantity of a container's resources; absent: not set.
Result<std::optional<std::int64_t>> quantity(const json::value& container, std::string_view kind,
                                             std::string_view resource) {
  const json::value& value = base::member(resources_of(container, kind), resource);
  if (value.is_null()) return std::nullopt;
  const std::string text = value.is_string()  ? std::string(value.as_string())
                           : value.is_int64() ? std::to_string(value.as_int64())
                                              : "?";
  const auto parsed = parse_quantity(text);
  if (parsed) return *parsed;
  return base::fail(ErrorCode::kInvalid, "container " + text_of(container, "name") + ": " +
                                             std::string(kind) + '.' + std::string(resource) +
                                             ": " + parsed.error().message);
}

/// Limits of huge pages: "hugepages-2Mi": "1Gi".
Result<json::array> huge_pages_of(const json::value& container) {
  constexpr std::string_view kPrefix = "hugepages-";
  json::array all;
  const json::value& limits = resources_of(container, "limits");
  if (!limits.is_object()) return all;
  for (const auto& limit : limits.as_object()) {
    const std::string_view resource = limit.key();
    if (!resource.starts_with(kPrefix)) continue;
    const auto page = parse_quantity(std::string(resource.substr(kPrefix.size())));
    const auto bytes = quantity(container, "limits", resource);
    if (!page) return unexpected(page.error());
    if (!bytes) return unexpected(bytes.error());
    all.push_back(json::object{{"page", *page / kThousand}, {"bytes", **bytes / kThousand}});
  }
  return all;
}

/// Guaranteed (GetPodQOS in pkg/apis/core/v1/helper/qos): each container has both limits, and
/// requests, where it has some, that equal them.
Result<bool> has_equal_limits(const json::value& container) {
  for (const char* resource : {"cpu", "memory"}) {
    const auto limit = quantity(container, "limits", resource);
    const auto request = quantity(container, "requests", resource);
    if (!limit) return unexpected(limit.error());
    if (!request) return unexpected(request.error());
    if (!*limit || (*request && **request != **limit)) return false;
  }
  return true;
}

std::optional<std::string> requested_class(const json::value& metadata, const std::string& name) {
  const json::value& annotations = base::member(metadata, "annotations");
  for (const std::string& key : policy::managed::class_annotations(name)) {
    if (base::member(annotations, key).is_string()) return text_of(annotations, key);
  }
  return std::nullopt;
}

Result<json::object> container_of(const json::value& container, const json::value& metadata) {
  const std::string name = text_of(container, "name");
  json::object made{{"name", name}};
  const auto cpu = quantity(container, "limits", "cpu");
  if (!cpu) return unexpected(cpu.error());
  const auto memory = quantity(container, "limits", "memory");
  if (!memory) return unexpected(memory.error());
  auto huge_pages = huge_pages_of(container);
  if (!huge_pages) return unexpected(huge_pages.error());
  if (*cpu) made["quota"] = **cpu * (kPeriod / kThousand);
  if (*cpu) made["period"] = kPeriod;
  if (*memory) made["memory"] = **memory / kThousand;
  if (!huge_pages->empty()) made["huge_pages"] = *std::move(huge_pages);
  if (const auto use = requested_class(metadata, name)) made["class"] = *use;
  return made;
}

class Pod {
 public:
  explicit Pod(const json::value& metadata) : metadata_(metadata) {}

  Result<void> add(const json::value& container, bool is_init) {
    auto made = container_of(container, metadata_);
    if (!made) return unexpected(made.error());
    const auto equal = has_equal_limits(container);
    if (!equal) return unexpected(equal.error());
    guaranteed_ = guaranteed_ && *equal;
    if (is_init && text_of(container, "restartPolicy") != "Always") (*made)["init"] = true;
    containers_.push_back(*std::move(made));
    return {};
  }

  json::object body() && {
    std::string space = text_of(metadata_, "namespace");
    if (space.empty()) space = "default";
    return {{"pod_name", space + '/' + text_of(metadata_, "name")},
            {"guaranteed", guaranteed_},
            {"containers", std::move(containers_)}};
  }

 private:
  const json::value& metadata_;
  bool guaranteed_ = true;
  json::array containers_;
};

}  // namespace

Result<std::int64_t> parse_quantity(const std::string& text) {
  long double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || std::signbit(value) || text.front() == '-') {
    return unexpected(no_quantity(text));
  }
  for (const auto& [suffix, factor] : kSuffixes) {
    if (suffix != std::string_view(stop, static_cast<std::size_t>(end - stop))) continue;
    const long double thousandths = std::ceil(value * factor);
    if (!(thousandths < 0x1p53L * 1e3L)) break;
    return static_cast<std::int64_t>(thousandths);
  }
  return unexpected(no_quantity(text));
}

Result<json::object> trial_of(const json::value& manifest) {
  const json::value& spec = base::member(manifest, "spec");
  const json::array& containers = array_of(spec, "containers");
  if (text_of(manifest, "kind") != "Pod" || containers.empty()) {
    return base::fail(ErrorCode::kInvalid,
                      "not a pod with containers in JSON, as `kubectl create --dry-run=client "
                      "-o json -f pod.yaml` prints it");
  }
  Pod pod(base::member(manifest, "metadata"));
  for (const json::value& container : array_of(spec, "initContainers")) {
    if (auto added = pod.add(container, true); !added) return unexpected(added.error());
  }
  for (const json::value& container : containers) {
    if (auto added = pod.add(container, false); !added) return unexpected(added.error());
  }
  return std::move(pod).body();
}

}  // namespace ka::cli
