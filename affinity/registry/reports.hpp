// SPDX-License-Identifier: Apache-2.0
// What each source said last, and when: of a container's CPUs also where another source outranks
// it. As many containers as the ledger has, with one report a source each.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "policy/facts/id_set.hpp"
#include "policy/ledger/event.hpp"

namespace ka::registry {

/// What one source said of a container's CPUs.
struct Report {
  using Time = std::chrono::system_clock::time_point;

  policy::CpuSet cpus;            ///< empty: no constraint
  std::optional<bool> exclusive;  ///< an operator's word
  Time at;

  bool operator==(const Report&) const = default;
};

class Reports {
 public:
  using BySource = std::map<policy::ledger::Source, Report>;

  /// Records an event that the ledger took; forgets what has gone.
  void record(const policy::ledger::Event& event, Report::Time now);

  /// When a source that reports the node as a whole (kubelet, PodResources) did so last; absent: it
  /// has not.
  std::optional<Report::Time> last_of_node(policy::ledger::Source source) const;
  /// Empty: no source has reported the container's CPUs since the start.
  const BySource& of(std::string_view pod, std::string_view container) const;

 private:
  using Containers = std::map<std::string, BySource, std::less<>>;

  void record(const policy::ledger::ContainerSeen& seen, policy::ledger::Source source,
              Report::Time now);

  std::map<policy::ledger::Source, Report::Time> node_;
  std::map<std::string, Containers, std::less<>> pods_;
};

}  // namespace ka::registry
