// SPDX-License-Identifier: Apache-2.0
// Compares, again and again, what the daemon says with what the cluster sees, and writes the
// difference at the pace of a fleet.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "affinity/cluster/api_server.hpp"
#include "affinity/cluster/daemon_reader.hpp"
#include "affinity/cluster/feature_file.hpp"
#include "affinity/cluster/pod_watch.hpp"
#include "affinity/cluster/view/node.hpp"
#include "affinity/cluster/view/outbox.hpp"
#include "affinity/cluster/view/pace.hpp"
#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"

namespace ka::cluster {

class Reporter {
 public:
  using Duration = base::Clock::Time::duration;
  /// Zero to the duration, evenly: it spreads nodes that do the same at the same time.
  using Random = std::function<Duration(Duration)>;

  struct Settings {
    Duration interval;             ///< between two looks at the daemon
    Duration pace;                 ///< between two writes, on average
    bool marks_node = true;        ///< the node's label and taint are written here
    bool reports_classes = false;  ///< sends the daemon the classes that pods request by annotation
    bool withdraws = false;        ///< takes everything back, and then does nothing
  };

  /// All that is referred to outlives it.
  struct Dependencies {
    const base::Clock& clock;
    const log::Log& log;
    const DaemonReader& daemon;
    const ApiServer& server;
    const PodWatch& watch;
    Random random;
    /// NFD marks the node with what is in it.
    std::optional<FeatureFile> feature_file{};
  };

  Reporter(const Settings& settings, Dependencies with);

  /// Does what is due, a write at most; returns how long there is nothing to do.
  Duration step();

 private:
  void poll();
  void verify();
  void report_classes();
  void write_feature();
  void write_one();
  void fail(const ApiServer::Attempt& attempt);

  Settings settings_;
  Dependencies with_;
  Outbox outbox_;
  NodeHealth health_;
  Pace pace_;
  base::Backoff backoff_;
  base::Clock::Time poll_due_, verify_due_, recheck_due_;
};

}  // namespace ka::cluster
