// SPDX-License-Identifier: Apache-2.0
// RDT classes: says to kata-affinity-helper which threads have which, and to the board what holds.
// The daemon writes nothing of resctrl.
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/helper_client/line_follower.hpp"
#include "affinity/helper_client/requester.hpp"
#include "affinity/line/node.hpp"
#include "affinity/rdt/verb.hpp"
#include "affinity/rdt/wants.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ka::rdt {

/// Must outlive the running of its io_context.
class Rdt {
 public:
  using Places = helper_client::Places;

  /// The first three must outlive it.
  Rdt(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
      const Places& places);

  /// Follows the line from now on. Nothing is requested before the node's sources have spoken.
  /// Where no thread has a class, the helper is not contacted, unless it has a record of what an
  /// earlier daemon requested.
  void start();
  /// Requests again what it holds: others may have written since.
  void refresh();

 private:
  using Wants = std::vector<Group>;

  void follow();
  void record(base::Result<State> response);
  void show(const Wants& wants);
  void warn(const Wants& wants, const board::RdtView& view);

  const line::Node& node_;
  helper_client::Requester<Verb> requester_;
  std::optional<State> state_;    ///< the last response, unless it does not respond now
  std::string trouble_;           ///< why there is none
  bool silent_ = false;           ///< because it does not respond
  std::set<std::string> warned_;  ///< of what is still so
  helper_client::LineFollower follower_;
};

}  // namespace ka::rdt
