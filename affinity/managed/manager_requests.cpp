// SPDX-License-Identifier: Apache-2.0
// What operators ask for, and what happens to the machine.
#include <algorithm>

#include "affinity/host/node_memory.hpp"
#include "affinity/managed/allocations.hpp"
#include "affinity/managed/locality.hpp"
#include "affinity/managed/manager.hpp"

namespace ka::managed {

using base::ErrorCode;
using base::fail;
using base::Result;
using policy::managed::Books;
using policy::managed::CpuUse;

Result<void> Manager::change(const std::string& sandbox, const std::optional<std::string>& name,
                             CpuUse use) {
  std::vector<std::string> concerned;
  for (const auto& [id, entry] : books_.entries()) {
    const bool is_meant = entry.about.sandbox == sandbox && (!name || entry.about.name == *name);
    if (is_meant && !entry.ended) concerned.push_back(id);
  }
  if (concerned.empty()) {
    return fail(ErrorCode::kNotFound,
                "no container" + (name ? " \"" + *name + '"' : "") + " in pod \"" + sandbox + '"');
  }
  Books next = upcoming(false);
  for (const std::string& id : concerned) {
    const auto problem = next.change(id, use);
    if (!problem) continue;
    return fail(ErrorCode::kConflict, "nothing changed: " + title(books_.entries().at(id)) + ": " +
                                          sentence(*problem) + "; " + remedy(*problem) +
                                          (name ? "" : ", or name one container of the pod"));
  }
  if (auto done = adopt(std::move(next)); !done) return done;
  apply();
  return {};
}

Result<void> Manager::request(const std::string& sandbox, const std::string& name,
                              const std::optional<std::string>& requested) {
  const auto found = std::ranges::find_if(books_.entries(), [&](const auto& one) {
    const policy::managed::Entry& entry = one.second;
    return entry.about.sandbox == sandbox && entry.about.name == name && !entry.ended;
  });
  if (found == books_.entries().end()) {
    return fail(ErrorCode::kNotFound, "no container \"" + name + "\" in pod \"" + sandbox + '"');
  }
  const std::string id = found->first;
  Books next = upcoming(false);
  next.request(id, requested);
  if (auto done = adopt(std::move(next)); !done) return done;
  apply();
  return {};
}

policy::managed::Trial Manager::try_pod(
    std::vector<policy::managed::TrialContainer> containers) const {
  policy::managed::MemoryRoom room;
  for (const auto& container : containers) {
    add_room(with_.sys, container.locality.needs, room);
    add_room(with_.sys, container.locality.pod.needs, room);
  }
  for (auto& container : containers) container.locality.room = room;
  return policy::managed::try_pod(upcoming(false), containers);
}

void Manager::change_machine(const policy::Topology& topology) {
  memory_nodes_ = host::memory_nodes(with_.sys);
  static_cast<void>(commit([&](Books& next) { next.change_machine(topology); }));
  apply();
}

}  // namespace ka::managed
