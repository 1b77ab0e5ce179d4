// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/managed/discover.hpp"

#include <boost/json/value.hpp>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/managed/managed.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/iso_time.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

constexpr mode_t kReadable = 0644;  ///< NFD need not run as root

/// The number of CPUs that `document` has under `name`.
std::string count(const json::value& document, const char* name) {
  const auto cpus = policy::parse_list<policy::CpuTag>(text_of(document, name));
  return std::to_string(cpus ? cpus->size() : 0);
}

std::string mode_of(const json::value& node, bool has_pools) {
  if (!flag_of(node, "enabled")) return "off";
  if (has_pools) return "managed";
  return flag_of(node, "observe") ? "observe" : "follow";
}

/// Absent where kubelet gives containers their CPUs.
base::Result<std::optional<json::object>> pools_of(const Daemon& daemon) {
  auto pools = daemon.get("/v1/pools");
  if (pools) return std::optional(std::move(*pools));
  if (pools.error().code == base::ErrorCode::kConflict) return std::nullopt;
  return unexpected(std::move(pools.error()));
}

base::Result<json::object> fetch(const Daemon& daemon) {
  const auto node = daemon.get("/v1/node");
  if (!node) return unexpected(node.error());
  const json::value* start = node->if_contains("start");
  if (start != nullptr && !flag_of(*start, "may_widen")) {
    return base::fail(base::ErrorCode::kConflict,
                      "the daemon still waits for its sources: owners of CPUs are not all known");
  }
  const auto pools = pools_of(daemon);
  if (!pools) return unexpected(pools.error());
  return make_features(*node, *pools);
}

/// Absent: they hold until the file is written again.
std::optional<std::chrono::system_clock::time_point> expiry(const DiscoverOptions& options) {
  if (options.valid_for == 0) return std::nullopt;
  return base::Clock().wall() + std::chrono::seconds(options.valid_for);
}

}  // namespace

json::object make_features(const json::object& node, const std::optional<json::object>& pools) {
  const json::value document(pools ? *pools : node);
  json::object features{{"mode", mode_of(node, pools.has_value())},
                        {"cpus-exclusive", count(document, "exclusive")},
                        {"cpus-shared", count(document, pools ? "shared" : "shared_pool")}};
  if (!pools) return features;
  features["cpus-infra"] = count(document, "infra");
  features["cpus-reserved"] = count(document, "kept_shared");
  features["cpus-free"] = count(document, "available");
  return features;
}

std::string describe_features(const json::object& features,
                              std::optional<std::chrono::system_clock::time_point> expires) {
  std::string text;
  if (expires) text = "# +expiry-time=" + base::iso_time(*expires) + '\n';
  for (const auto& [name, value] : features) {
    text += "kata-affinity.io/" + std::string(name) + '=' + value.as_string().c_str() + '\n';
  }
  return text;
}

Exit run(const DiscoverOptions& options, Output& output) {
  const auto features = fetch(Daemon(options.socket));
  if (!features) {
    const Exit failed = output.fail(features.error());
    return features.error().code == base::ErrorCode::kConflict ? Exit::kNo : failed;
  }
  const std::string text = describe_features(*features, expiry(options));
  if (options.output.empty()) {
    output.show({{"features", *features}}, [&text] { return std::string(text); });
    return Exit::kDone;
  }
  const auto written = base::write_atomically(options.output, text, kReadable);
  if (!written) return output.fail(written.error());
  output.show({{"file", options.output}, {"features", *features}},
              [&] { return options.output + ": written\n"; });
  return Exit::kDone;
}

}  // namespace ka::cli
