// SPDX-License-Identifier: Apache-2.0
// Which containers no CFS quota is to stop, where their pods request it: says it to
// kata-affinity-helper, and to the board what came of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "affinity/board/board.hpp"
#include "affinity/helper_client/line_follower.hpp"
#include "affinity/helper_client/requester.hpp"
#include "affinity/line/node.hpp"
#include "affinity/quotas/verb.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ka::quotas {

/// Must outlive the running of its io_context.
class Quotas {
 public:
  using Places = helper_client::Places;

  /// The first three must outlive it.
  Quotas(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
         const Places& places);

  /// Follows the line from now on. Nothing is requested before the node's sources have spoken.
  /// Where no pod requests anything, the helper is not contacted, unless it has a record of what an
  /// earlier daemon requested.
  void start();
  /// Requests again what it holds: others may have written since.
  void refresh();

 private:
  void follow();
  void record(const Wants& sent, base::Result<State> response);

  const line::Node& node_;
  helper_client::Requester<Verb> requester_;
  helper_client::LineFollower follower_;
};

}  // namespace ka::quotas
