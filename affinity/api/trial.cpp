// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/trial.hpp"

#include <algorithm>
#include <bit>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "affinity/api/pools.hpp"
#include "base/json/json.hpp"
#include "policy/facts/limits.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;
using policy::format_list;
using policy::managed::TrialContainer;

/// Blanks are in no id of a runtime: it meets no pod that is there.
constexpr const char* kPod = "a pod";

void read_huge_pages(base::Fields& fields, policy::managed::Needs& needs,
                     base::InputError& errors) {
  fields.each("huge_pages", [&](const json::value& value, const std::string& path) {
    std::int64_t page = 0;
    std::int64_t bytes = 0;
    base::Fields one(value, path, errors);
    one.require({"page", "bytes"});
    one.read("page", page);
    one.read("bytes", bytes);
    one.finish();
    const bool is_size = page > 0 && std::has_single_bit(static_cast<std::uint64_t>(page));
    if (!is_size) one.reject("page", "must be a power of two");
    if (bytes > 0)
      needs.memory[static_cast<std::uint64_t>(page)] = static_cast<std::uint64_t>(bytes);
  });
}

TrialContainer read_container(const json::value& value, const std::string& path,
                              base::InputError& errors) {
  TrialContainer container;
  std::string use;
  std::int64_t memory = 0;
  base::Fields fields(value, path, errors);
  fields.require({"name"});
  fields.read("name", container.candidate.name);
  fields.read("init", container.ends);
  fields.read("quota", container.candidate.quota);
  fields.read("period", container.candidate.period);
  fields.read("memory", memory);
  read_huge_pages(fields, container.locality.needs, errors);
  if (fields.read("class", use)) container.candidate.requested = use;
  fields.finish();
  if (memory > 0) {
    container.locality.needs.memory[policy::managed::kOrdinaryPage] =
        static_cast<std::uint64_t>(memory);
  }
  return container;
}

double limit_of(const policy::managed::Candidate& candidate) {
  const bool has_limit = candidate.quota > 0 && candidate.period > 0;
  return has_limit ? static_cast<double>(candidate.quota) / static_cast<double>(candidate.period)
                   : 0;
}

/// What all containers need together, as kubelet reports it to the runtime: init containers run
/// before the others, one at a time.
policy::managed::PodNeeds needs_of_all(const std::vector<TrialContainer>& containers) {
  double cpus = 0;
  double most = 0;
  policy::managed::PodNeeds all;
  for (const auto& [candidate, locality, ends] : containers) {
    if (ends) most = std::max(most, limit_of(candidate));
    if (!ends) cpus += limit_of(candidate);
    for (const auto& [page, bytes] : locality.needs.memory) {
      if (!ends) all.needs.memory[page] += bytes;
    }
  }
  for (const auto& [candidate, locality, ends] : containers) {
    for (const auto& [page, bytes] : locality.needs.memory) {
      std::uint64_t& needed = all.needs.memory[page];
      needed = std::max(needed, bytes);
    }
  }
  all.cpus = static_cast<int>(std::min<double>(std::ceil(std::max(cpus, most)), policy::kMaxIds));
  return all;
}

}  // namespace

base::Result<std::vector<TrialContainer>> read_trial(std::string_view body) {
  const auto document = base::parse_json(body, "request");
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  std::string pod_name;
  bool guaranteed = false;
  fields.require({"pod_name", "containers"});
  fields.read("pod_name", pod_name);
  fields.read("guaranteed", guaranteed);
  std::vector<TrialContainer> containers;
  fields.each("containers", [&](const json::value& value, const std::string& path) {
    auto& candidate = containers.emplace_back(read_container(value, path, errors)).candidate;
    candidate.sandbox = kPod;
    candidate.id = kPod + std::to_string(containers.size());
    candidate.pod_name = pod_name;
    candidate.guaranteed = guaranteed;
  });
  fields.finish();
  if (containers.size() > policy::kMaxContainers) fields.reject("containers", "too many");
  if (!errors.empty()) return unexpected(errors.error());
  const auto all = needs_of_all(containers);
  for (TrialContainer& container : containers) container.locality.pod = all;
  return containers;
}

json::object to_json(const policy::managed::Trial& trial) {
  json::array containers;
  for (const auto& [entry, cpus] : trial.containers) containers.push_back(to_json(entry, cpus));
  json::array moves;
  for (const auto& [entry, from, to] : trial.moves) {
    json::object move = to_json(entry, to);
    move["from"] = format_list(from);
    move["to"] = format_list(to);
    moves.push_back(std::move(move));
  }
  return {{"fits", trial.fits()},
          {"refused", trial.refused},
          {"containers", std::move(containers)},
          {"moves", std::move(moves)}};
}

}  // namespace ka::api
