// SPDX-License-Identifier: Apache-2.0
// The node as its daemon reports it, and what the cluster is told about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/cluster/view/pods.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ka::cluster {

struct Sandbox {
  std::string id, pod_uid;
  bool is_placed = true;               ///< not: it is only watched, or was released
  std::int64_t drift = 0;              ///< threads that are not where they should be
  std::optional<Condition> condition;  ///< absent: none of its containers is exclusive
  bool is_contested = false;           ///< a neighbour claims CPUs that it owns
};

/// A drift that the daemon has seen. `sequence` starts anew with the daemon.
struct Drift {
  std::int64_t sequence = 0;
  std::string sandbox;
  std::string text;
};

/// What became of the promise that exclusive CPUs are exclusive.
enum class NodeState {
  kKept,
  kDegraded,  ///< some container with exclusive CPUs is not alone on them
  kObserved,  ///< the daemon plans and reports, and moves no thread
  kDisabled,  ///< it does not even plan
  kUnknown,   ///< something that should have been read was not
  kBroken,    ///< an invariant is violated, or there is no daemon
};

/// "kept", "degraded", ...: values of the node's label.
std::string_view state_name(NodeState state);

/// Responses of the daemon. kInvalid: not what it answers.
base::Result<std::vector<Sandbox>> read_sandboxes(std::string_view list);
base::Result<std::vector<Drift>> read_drifts(std::string_view drifts);
/// `node`: GET /v1/node; `report`: POST /v1/verify.
base::Result<NodeState> read_node(std::string_view node, std::string_view report);

/// Makes a state out of readings, so that what is repaired in time is no reason to turn pods away.
class NodeHealth {
 public:
  /// A daemon that restarts is away for less.
  static constexpr std::chrono::seconds kAway{60};
  /// Drift may be seen before the daemon has repaired it: one violation is not yet a broken node.
  static constexpr int kViolations = 2;

  /// From now on the daemon is waited for.
  explicit NodeHealth(const base::Clock& clock) : clock_(clock), answered_(clock.now()) {}

  /// The daemon answered.
  void record_answer() { answered_ = clock_.now(); }
  /// What it verified.
  void record(NodeState reading);
  /// Absent: not known yet, nothing should be said.
  std::optional<NodeState> state() const;
  /// For so long that nothing holds any more that it said.
  bool is_away() const { return clock_.now() - answered_ >= kAway; }

 private:
  const base::Clock& clock_;
  base::Clock::Time answered_;
  int violations_ = 0;
  std::optional<NodeState> state_;
};

}  // namespace ka::cluster
