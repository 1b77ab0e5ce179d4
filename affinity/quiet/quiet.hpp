// SPDX-License-Identifier: Apache-2.0
// grade = "quiet": says to kata-affinity-helper which CPUs belong to dedicated vCPUs, and to the
// board which sandboxes have them to themselves. The daemon writes nothing of the host's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/helper_client/line_follower.hpp"
#include "affinity/helper_client/requester.hpp"
#include "affinity/line/node.hpp"
#include "affinity/quiet/claims.hpp"
#include "affinity/quiet/client.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ka::quiet {

/// Must outlive the running of its io_context.
class Quiet {
 public:
  using Places = helper_client::Places;

  /// The first three must outlive it.
  Quiet(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
        const Places& places);

  /// Follows the line from now on: after what runs then, so that nothing of it waits. Nothing is
  /// asked before the node's sources have spoken. If the host is to be kept off no CPU, the helper
  /// is only asked where it has a record: of what an earlier daemon asked for. Else it need not
  /// run.
  void start();
  /// Asks again for what it holds, and for what was refused: others may have written since.
  void refresh();

 private:
  struct Refusal {
    policy::CpuSet cpus;
    std::string why;
    bool again = false;  ///< it is asked for once more
  };

  void notify_of_refused();
  void follow();
  void request(const Wants& wants);
  std::vector<policy::plan::QuietClaim> unrefused(const Wants& wants) const;
  void record(const policy::QuietRequest& sent, base::Result<policy::QuietState> answer);
  void record(policy::QuietState state);
  void refuse(const std::string& why);
  void show(const Wants& wants);
  std::optional<policy::plan::QuietObstacle> obstacle_of(
      const policy::plan::QuietClaim& claim) const;
  void notify(const std::string& sandbox,
              const std::optional<policy::plan::QuietObstacle>& obstacle);

  const line::Node& node_;
  helper_client::Requester<QuietVerb> requester_;
  std::set<std::string> updated_;  ///< pods that were reported since follow()
  std::vector<policy::plan::QuietClaim> requested_claims_;  ///< the claims in that
  std::optional<policy::QuietState> state_;  ///< the last answer, unless it does not answer now
  policy::CpuSet held_;                      ///< by the last answer
  std::string trouble_;                      ///< why it does not answer
  std::map<std::string, Refusal> refusals_;  ///< by sandbox
  bool one_by_one_ = false;                  ///< all at once was refused
  helper_client::LineFollower follower_;
  board::Subscription updates_;
};

}  // namespace ka::quiet
