// SPDX-License-Identifier: Apache-2.0
// kubelet's PodResources API as a source: kubelet's assignments, queried at the start, while
// no better source reports who owns a container's CPUs, and by verify. Never while a client waits
// for a response.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/rpc/timer.hpp"
#include "shim-ext/pod_resources/client.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/source/source.hpp"

namespace ka::pod_resources {

/// kubelet is asked no more often than this, and in doubt ever more rarely.
inline constexpr std::chrono::milliseconds kPause{2'000};
inline constexpr std::chrono::milliseconds kLongestPause{30'000};

class PodResourcesSource final : public source::Source {
 public:
  /// All must outlive it.
  PodResourcesSource(boost::asio::io_context& io, const base::Clock& clock,
                     std::filesystem::path socket, source::Node& node, source::Peers& peers,
                     const log::Log& log);

  void start() override { query(); }
  void refresh() override;
  void notify(source::Notice notice) override;
  void query_for_verify(const std::function<void()>& answered) override;

 private:
  void query();
  void query_in_doubt();
  void record(base::Result<policy::ledger::ResourcesSeen> seen);
  void record_error(const base::Error& error);
  void report(policy::ledger::ResourcesSeen seen);

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  std::filesystem::path socket_;
  source::Node& node_;
  source::Peers& peers_;
  const log::Log& log_;
  base::Backoff backoff_{kPause, kLongestPause};
  rpc::Timer next_;                             ///< in doubt
  std::optional<base::Clock::Time> queried_;    ///< when it was last
  bool waits_ = false;                          ///< `next_` is set
  bool up_ = false;                             ///< it has answered
  std::string logged_;                          ///< the last failure
  std::optional<Client> client_;                ///< while an answer is awaited
  std::vector<std::function<void()>> waiting_;  ///< for the answer
};

}  // namespace ka::pod_resources
