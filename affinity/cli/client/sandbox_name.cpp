// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/client/sandbox_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <iterator>

namespace ka::cli {
namespace {

namespace json = boost::json;
using Matches = std::function<bool(const Named&)>;

std::vector<const Named*> matching(const std::vector<Named>& known, const Matches& matches) {
  std::vector<const Named*> found;
  for (const Named& one : known) {
    if (matches(one)) found.push_back(&one);
  }
  return found;
}

base::Result<std::string> one_of(const std::vector<const Named*>& found, const std::string& given) {
  if (found.size() == 1) return found.front()->id;
  std::vector<std::string> candidates;
  for (const Named* one : found) {
    candidates.push_back(one->names.empty() ? one->id
                                            : fmt::format("{} ({})", one->id, one->names.front()));
  }
  return base::fail(base::ErrorCode::kConflict,
                    fmt::format("\"{}\" is ambiguous, it matches: {}; use more of the name, or the "
                                "id",
                                given, fmt::join(candidates, ", ")));
}

}  // namespace

std::vector<Named> sandboxes_of(const json::value& list) {
  std::vector<Named> known;
  for (const json::value& sandbox : array_of(list, "sandboxes")) {
    known.push_back({text_of(sandbox, "id"), {}});
    const std::string pod = text_of(sandbox, "pod_name");
    if (pod.empty()) continue;
    known.back().names.push_back(pod);
    const std::size_t slash = pod.find('/');
    if (slash != std::string::npos) known.back().names.push_back(pod.substr(slash + 1));
  }
  return known;
}

std::vector<Named> containers_of(const json::value& sandbox) {
  std::vector<Named> known;
  for (const json::value& container : array_of(sandbox, "containers")) {
    known.push_back({text_of(container, "id"), {}});
    const std::string name = text_of(container, "name");
    if (!name.empty()) known.back().names.push_back(name);
  }
  return known;
}

base::Result<std::string> resolve(const std::vector<Named>& known, const std::string& given) {
  const auto begins = [&given](const std::string& name) { return name.starts_with(given); };
  const Matches steps[] = {
      [&](const Named& one) { return one.id == given; },
      [&](const Named& one) { return std::ranges::count(one.names, given) > 0; },
      [&](const Named& one) { return begins(one.id) || std::ranges::any_of(one.names, begins); }};
  for (const Matches& matches : steps) {
    const auto found = matching(known, matches);
    if (!found.empty()) return one_of(found, given);
  }
  return given;
}

std::vector<std::string> unambiguous(const std::vector<Named>& known) {
  std::vector<std::string> names;
  for (const Named& one : known) {
    names.push_back(one.id);
    std::ranges::copy_if(one.names, std::back_inserter(names), [&](const std::string& name) {
      return name != one.id && resolve(known, name) == one.id;
    });
  }
  return names;
}

base::Result<std::string> find_sandbox(const Daemon& daemon, const std::string& given) {
  if (given.empty()) return given;
  const auto list = daemon.get("/v1/sandboxes");
  if (!list) return unexpected(list.error());
  return resolve(sandboxes_of(*list), given);
}

base::Result<std::string> find_container(const Daemon& daemon, const std::string& sandbox,
                                         const std::string& given) {
  const auto found = daemon.get("/v1/sandboxes/" + encode(sandbox));
  if (!found) return unexpected(found.error());
  return resolve(containers_of(*found), given);
}

}  // namespace ka::cli
