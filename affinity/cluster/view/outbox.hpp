// SPDX-License-Identifier: Apache-2.0
// Decides what to write to the API server: the difference between what the cluster should see and
// what it sees. No I/O.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "affinity/cluster/view/node.hpp"
#include "affinity/cluster/view/pods.hpp"
#include "base/clock.hpp"

namespace ka::cluster {

/// The node's label and taint; absent: they go.
struct NodeWrite {
  std::optional<NodeState> state;
};

/// Our condition of a pod; absent: it goes.
struct ConditionWrite {
  Pod pod;
  std::optional<Condition> wanted;
};

struct EventWrite {
  Pod pod;
  bool is_warning = false;
  std::string reason;  ///< "Isolated", "NotIsolated", "ContestedByNeighbour", "DriftRepaired"
  std::string message;
};

using Write = std::variant<NodeWrite, ConditionWrite, EventWrite>;

/// What became of a write.
enum class Outcome {
  kDone,
  kRefused,  ///< repeating it at once is useless: the pod has gone, or we may not
  kFailed,   ///< no answer, or the server is busy: repeat it
};

class Outbox {
 public:
  /// Of one pod and one reason there is one event in this time.
  static constexpr std::chrono::minutes kBetweenEvents{10};
  /// After this a write that was refused is tried once more, and the API server's copy counts more
  /// than what we wrote.
  static constexpr std::chrono::minutes kHold{10};
  /// Events that wait; further ones are lost.
  static constexpr std::size_t kMostEvents = 256;

  /// `marks_node`: the node's label and taint are ours.
  explicit Outbox(const base::Clock& clock, bool marks_node = true)
      : clock_(clock), marks_node_(marks_node) {}

  /// The daemon's list. Remembered until the next.
  void update(std::vector<Sandbox> sandboxes, const std::vector<Drift>& drifts, const Pods& pods);
  /// The daemon has been away for so long that nothing is known any more.
  void update_away();
  /// From now on the cluster should see nothing of us. For good.
  void withdraw() { state_ = State::kWithdrawn; }

  /// The most important write that is due: the node, then conditions, then events. Absent: none.
  /// `node` absent: not known, and nothing is to be said of it.
  std::optional<Write> next(std::optional<NodeState> node, const Pods& pods) const;
  void record(const Write& write, Outcome outcome);
  /// Someone may have changed the node's label or taint: look again.
  void recheck_node() { node_.reset(); }

 private:
  using Time = base::Clock::Time;
  /// What the cluster is to see.
  ///
  /// | from             | to         | when          |
  /// |------------------|------------|---------------|
  /// | kUnknown, kAway  | kKnown     | update()      |
  /// | kUnknown, kKnown | kAway      | update_away() |
  /// | any              | kWithdrawn | withdraw()    |
  enum class State {
    kUnknown,    ///< the daemon has not answered yet: nothing is written of pods
    kKnown,      ///< what it reported last
    kAway,       ///< that nothing is known any more
    kWithdrawn,  ///< nothing
  };
  struct Written {
    std::optional<Condition> condition;
    Time at;
  };

  const Sandbox* sandbox_of(const Pod& pod) const;
  std::optional<Condition> wanted(const Pod& pod) const;
  std::optional<Condition> present(const Pod& pod) const;
  std::optional<Write> next_for_node(std::optional<NodeState> node) const;
  std::optional<Write> next_for_pods(const Pods& pods) const;
  void collect_drifts(const std::vector<Drift>& drifts);
  void report_drifts(const Pods& pods);
  void report_change(const ConditionWrite& write);
  void add(EventWrite event);
  void record(const NodeWrite& write, Outcome outcome);
  void record(const ConditionWrite& write, Outcome outcome);
  void record(const EventWrite& write, Outcome outcome);
  void expire();
  void move_to(State state);

  const base::Clock& clock_;
  bool marks_node_;
  std::map<std::string, Sandbox> sandboxes_;  ///< by pod_uid
  State state_ = State::kUnknown;
  std::optional<NodeWrite> node_;                                 ///< as last written
  std::map<std::string, Written> written_;                        ///< by pod: conditions
  std::map<std::string, Time> held_;                              ///< by pod: refused
  std::map<std::string, std::string> drifts_;                     ///< by sandbox: not yet repaired
  std::optional<std::int64_t> last_drift_;                        ///< its number
  std::deque<EventWrite> events_;                                 ///< to be written
  std::map<std::pair<std::string, std::string>, Time> reported_;  ///< by pod and reason
};

}  // namespace ka::cluster
