// SPDX-License-Identifier: Apache-2.0
#include "affinity/registry/reports.hpp"

#include <variant>

namespace ka::registry {

using policy::ledger::Source;

void Reports::record(const policy::ledger::Event& event, Report::Time now) {
  if (const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body)) {
    record(*seen, event.source, now);
  } else if (const auto* pod = std::get_if<policy::ledger::PodGone>(&event.body)) {
    pods_.erase(pod->id);
  } else if (const auto* gone = std::get_if<policy::ledger::ContainerGone>(&event.body)) {
    const auto found = pods_.find(gone->sandbox);
    if (found != pods_.end()) found->second.erase(gone->container);
  } else if (std::holds_alternative<policy::ledger::KubeletSeen>(event.body) ||
             std::holds_alternative<policy::ledger::ResourcesSeen>(event.body) ||
             std::holds_alternative<policy::ledger::PreparedSeen>(event.body)) {
    node_[event.source] = now;
  }
}

/// A report without CPUs says nothing new of them.
void Reports::record(const policy::ledger::ContainerSeen& seen, Source source, Report::Time now) {
  if (!seen.spec.cpus) return;
  pods_[seen.sandbox][seen.id][source] = {*seen.spec.cpus, seen.exclusive, now};
}

std::optional<Report::Time> Reports::last_of_node(Source source) const {
  const auto found = node_.find(source);
  return found == node_.end() ? std::nullopt : std::optional(found->second);
}

const Reports::BySource& Reports::of(std::string_view pod, std::string_view container) const {
  static const BySource kNone;
  const auto containers = pods_.find(pod);
  if (containers == pods_.end()) return kNone;
  const auto found = containers->second.find(container);
  return found == containers->second.end() ? kNone : found->second;
}

}  // namespace ka::registry
