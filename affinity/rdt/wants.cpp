// SPDX-License-Identifier: Apache-2.0
#include "affinity/rdt/wants.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ka::rdt {
namespace {

using ByClass = std::map<std::string, std::vector<policy::ThreadKey>>;

bool has_classes(const policy::plan::ResourceClasses& classes) {
  return std::ranges::any_of(
      classes.by_name, [](const auto& entry) { return entry.second.rdt != policy::RdtShares{}; });
}

void add(const line::Node& node, const std::string& id, ByClass& threads) {
  const auto view = node.view(id);
  if (!view || view->released || view->observed) return;
  for (const line::RdtVcpu& one : view->classes.rdt) threads[one.name].push_back(one.key);
}

}  // namespace

std::vector<Group> wants_of(const line::Node& node) {
  if (!has_classes(node.options.classes)) return {};
  ByClass threads;
  for (const std::string& id : node.sandbox_ids()) add(node, id, threads);
  std::vector<Group> groups;
  for (auto& [name, members] : threads) {
    const auto given = node.options.classes.by_name.find(name);
    if (given == node.options.classes.by_name.end()) continue;  // it is about to be planned again
    groups.push_back({name, given->second.rdt, std::move(members)});
  }
  return groups;
}

}  // namespace ka::rdt
