// SPDX-License-Identifier: Apache-2.0
// How deeply CPUs of containers may idle, and who chooses their frequency, where their pods request
// it: says it to kata-affinity-helper, and to the board what came of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "affinity/board/board.hpp"
#include "affinity/helper_client/line_follower.hpp"
#include "affinity/helper_client/requester.hpp"
#include "affinity/line/node.hpp"
#include "affinity/power/verb.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/facts/power.hpp"

namespace ka::power {

/// Must outlive the running of its io_context.
class Power {
 public:
  using Places = helper_client::Places;

  /// The first three must outlive it.
  Power(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
        const Places& places);

  /// Follows the line from now on. Nothing is requested before the node's sources have spoken.
  /// Where no pod requests anything, the helper is not contacted, unless it has a record of what an
  /// earlier daemon requested.
  void start();
  /// Requests again what it holds: others may have written since.
  void refresh();

 private:
  void follow();
  void record(const policy::PowerRequests& sent, base::Result<State> response);

  const line::Node& node_;
  helper_client::Requester<Verb> requester_;
  helper_client::LineFollower follower_;
};

}  // namespace ka::power
