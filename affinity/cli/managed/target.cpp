// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/managed/target.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/sandbox_name.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::Result;

bool is_known(const std::vector<Named>& known, const std::string& id) {
  return std::ranges::count(known, id, &Named::id) > 0;
}

/// Each pod once, as sandboxes_of() reads them.
std::vector<Named> pods_of(const json::value& pools) {
  json::array pods;
  for (const json::value& container : array_of(pools, "containers")) {
    json::object pod{{"id", text_of(container, "pod")},
                     {"pod_name", text_of(container, "pod_name")}};
    if (std::ranges::find(pods, json::value(pod)) == pods.end()) pods.push_back(std::move(pod));
  }
  return sandboxes_of(json::object{{"sandboxes", std::move(pods)}});
}

/// The API wants a container's name: that is what its id, or a part of either, stands for.
std::vector<Named> containers_in(const json::value& pools, const std::string& pod) {
  std::vector<Named> known;
  for (const json::value& container : array_of(pools, "containers")) {
    if (text_of(container, "pod") != pod) continue;
    known.push_back({text_of(container, "name"), {text_of(container, "id")}});
  }
  return known;
}

Result<Target> no_pod(const std::string& given) {
  return base::fail(ErrorCode::kNotFound, "no container of a pod \"" + given +
                                              "\" gets its CPUs from kata-affinity; "
                                              "`kata-affinityctl pools` lists those that do");
}

Result<Target> no_container(const std::string& pod, const std::string& given,
                            const std::vector<Named>& known) {
  std::string names;
  for (const Named& one : known) names += (names.empty() ? "" : ", ") + one.id;
  return base::fail(ErrorCode::kNotFound,
                    "no container \"" + given + "\" in pod \"" + pod + "\"; it has: " + names);
}

}  // namespace

Result<Target> find_target(const json::value& pools, const std::string& given) {
  const std::vector<Named> pods = pods_of(pools);
  const auto whole = resolve(pods, given);
  if (!whole) return unexpected(whole.error());
  if (is_known(pods, *whole)) return Target{*whole, std::nullopt};
  const std::size_t slash = given.rfind('/');
  if (slash == std::string::npos) return no_pod(given);
  const std::string name = given.substr(0, slash);
  const auto pod = resolve(pods, name);
  if (!pod) return unexpected(pod.error());
  if (!is_known(pods, *pod)) return no_pod(name);
  const std::vector<Named> containers = containers_in(pools, *pod);
  const auto container = resolve(containers, given.substr(slash + 1));
  if (!container) return unexpected(container.error());
  if (!is_known(containers, *container)) return no_container(name, *container, containers);
  return Target{*pod, *container};
}

bool is_meant(const Target& target, const json::value& container) {
  return text_of(container, "pod") == target.pod &&
         (!target.container || text_of(container, "name") == *target.container);
}

}  // namespace ka::cli
