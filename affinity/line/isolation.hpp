// SPDX-License-Identifier: Apache-2.0
// Which exclusive containers of a sandbox have their CPUs to themselves, from one run to the next.
// What decides it is pure (policy/plan/isolation.hpp).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "affinity/line/views.hpp"
#include "policy/plan/invariants.hpp"
#include "policy/plan/isolation.hpp"

namespace ka::line {

class Node;
class Sandbox;

/// The threads of a sandbox with the masks that were read last.
std::vector<policy::plan::ActualThread> actual_threads(const std::vector<ThreadView>& threads);

/// The status of a sandbox's exclusive containers, and the last notification for each.
class IsolationRecord {
 public:
  using Containers = std::vector<policy::plan::ContainerIsolation>;

  /// By container id.
  const Containers& containers() const { return containers_; }
  void set(Containers containers);
  /// Records what is notified of a container; false when that was notified last.
  bool announce(const std::string& container, const std::string& obstacles);

 private:
  Containers containers_;
  std::map<std::string, std::string> announced_;  ///< by container: its obstacles
};

/// Brings the record up to date with the masks that were read last, and notifies once of each
/// container that became isolated, or is not any more. A guest that has yet to answer the last
/// change is waited for.
void update_isolation(const Node& node, Sandbox& sandbox);

}  // namespace ka::line
