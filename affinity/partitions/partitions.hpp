// SPDX-License-Identifier: Apache-2.0
// Partitions of quiet sandboxes: says to kata-affinity-helper which there are to be, and to the
// board which there are. The daemon writes nothing of them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/helper_client/line_follower.hpp"
#include "affinity/helper_client/requester.hpp"
#include "affinity/line/answer_limit.hpp"
#include "affinity/line/node.hpp"
#include "affinity/partitions/verb.hpp"
#include "affinity/partitions/wants.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ka::partitions {

/// Must outlive the running of its io_context.
class Partitions {
 public:
  using Places = helper_client::Places;
  /// The kernel may let threads of this sandbox onto other CPUs now.
  using Changed = std::function<void(const std::string& sandbox)>;

  /// The first three must outlive it.
  Partitions(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
             const Places& places, Changed changed);

  /// Follows the line and the grades from now on. Nothing is requested before the node's sources
  /// have spoken. Where no sandbox is quiet, the helper is not contacted, unless it has a record of
  /// what an earlier daemon requested.
  void start();
  /// Requests again what it holds: others may have written since.
  void refresh();

 private:
  void follow();
  bool is_host_known() const;
  void request(const Wants& wants);
  void return_vcpus(const Wants& wants);
  bool has_left(const std::string& sandbox) const;
  void record(const Wants& sent, base::Result<State> response);
  void hold(const Wants& sent, State state);
  void notify_of_undone();
  void forget_ended();
  void show(const Candidates& found);
  board::PartitionView view_of(const std::string& id, const policy::Partition& partition) const;

  const line::Node& node_;
  helper_client::Requester<Verb> requester_;
  Changed changed_;
  /// By sandbox: how often vCPUs that had left were requested back.
  std::map<std::string, line::AnswerLimit> returns_;
  std::set<std::string> unseen_;             ///< sandboxes for which that is without a response
  Wants held_;                               ///< what was sent with the last response
  Processes processes_;                      ///< of containers
  std::optional<State> state_;               ///< that response, unless it does not respond now
  std::map<policy::ThreadKey, int> undone_;  ///< by VMM: how often, as last notified
  std::string trouble_;                      ///< why there is none
  std::string refusal_;                      ///< of what is requested and not held
  helper_client::LineFollower follower_;
  std::vector<board::Subscription> grades_;
};

}  // namespace ka::partitions
